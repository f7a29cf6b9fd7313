// Package docs holds tests of the documents: what they tell a reader to run is
// there, and what they link to.
package docs
