module github.com/otelcomcount/otelcomcount/test

go 1.26.0

require github.com/otelcomcount/otelcomcount v0.0.0

replace github.com/otelcomcount/otelcomcount => ../
