package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// behindGateway makes a handler answer the events of an API Gateway HTTP API
// (payload format 2.0).
func behindGateway(handler http.Handler) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		request, err := requestOf(ctx, event)
		if err != nil {
			// Not the function's fault: an error here would be counted as one.
			return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // see above
		}
		response := &response{header: http.Header{}, status: http.StatusOK}
		handler.ServeHTTP(response, request)
		return response.event(), nil
	}
}

func requestOf(ctx context.Context, event events.APIGatewayV2HTTPRequest) (*http.Request, error) {
	body := []byte(event.Body)
	if event.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(event.Body); err != nil {
			return nil, err
		}
	}
	// The raw path has the stage in it, and the gateway has unescaped it. The
	// parameter is the id itself.
	path := event.RawPath
	if id, ok := event.PathParameters["id"]; ok {
		path = "/counters/" + url.PathEscape(id)
	}
	request, err := http.NewRequestWithContext(ctx, event.RequestContext.HTTP.Method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = event.RawQueryString
	request.RemoteAddr = event.RequestContext.HTTP.SourceIP
	for name, value := range event.Headers {
		request.Header.Set(name, value)
	}
	return request, nil
}

// response collects an answer.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *response) Header() http.Header         { return r.header }
func (r *response) WriteHeader(status int)      { r.status = status }
func (r *response) Write(p []byte) (int, error) { return r.body.Write(p) }

func (r *response) event() events.APIGatewayV2HTTPResponse {
	headers := make(map[string]string, len(r.header))
	for name, values := range r.header {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: r.status, Headers: headers, Body: r.body.String()}
}
