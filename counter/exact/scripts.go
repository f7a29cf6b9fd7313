package exact

import (
	_ "embed"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

var (
	//go:embed add.lua
	addLua string
	//go:embed count.lua
	countLua string
	//go:embed batch.lua
	batchLua string
	//go:embed read.lua
	readLua string
	//go:embed delete.lua
	deleteLua string

	addScript    = script.New(addLua)
	batchScript  = script.New(countLua + batchLua)
	readScript   = script.New(countLua + readLua)
	deleteScript = script.New(countLua + deleteLua)
)
