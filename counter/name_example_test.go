package counter_test

import (
	"fmt"

	"github.com/otelcomcount/otelcomcount/counter"
)

func ExampleGroupName() {
	fmt.Println(counter.GroupName("shop", "cart"))
	fmt.Println(counter.GroupName("", "cart"))
	fmt.Println(counter.GroupName("", "shop/cart"))
	// Output:
	// shop/cart:
	// cart:
	// shop%2Fcart:
}
