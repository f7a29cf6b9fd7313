package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxFrame bounds what a length in the stream may ask us to hold.
const maxFrame = 512 << 20

var errNotRESP = errors.New("not RESP")

// readCommand reads one command as clients send it, an array of bulk strings, and
// returns its arguments and the bytes as they came.
func readCommand(r *bufio.Reader) (args []string, raw []byte, err error) {
	raw, err = readLine(r, nil)
	if err != nil {
		return nil, nil, err
	}
	n, err := header(raw, '*')
	if err != nil {
		return nil, nil, err
	}
	for range n {
		start := len(raw)
		if raw, err = readLine(r, raw); err != nil {
			return nil, nil, noEOF(err)
		}
		size, err := header(raw[start:], '$')
		if err == nil && size < 0 {
			err = fmt.Errorf("%w: an argument that is nil", errNotRESP)
		}
		if err != nil {
			return nil, nil, err
		}
		start = len(raw)
		if raw, err = readBytes(r, raw, size+2); err != nil {
			return nil, nil, err
		}
		args = append(args, string(raw[start:start+size]))
	}
	return args, raw, nil
}

// readReply appends one whole reply to raw, in RESP2 or RESP3, and reports whether
// it is a push message, which answers no command.
func readReply(r *bufio.Reader, raw []byte) (_ []byte, push bool, err error) {
	start := len(raw)
	if raw, err = readLine(r, raw); err != nil {
		return nil, false, err
	}
	line := raw[start:]
	kind := line[0]
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return raw, false, nil
	case '$', '!', '=':
		size, err := header(line, kind)
		if err != nil || size < 0 { // -1: RESP2's nil
			return raw, false, err
		}
		raw, err = readBytes(r, raw, size+2)
		return raw, false, err
	case '*', '~', '>', '%', '|':
		n, err := header(line, kind)
		if err != nil {
			return nil, false, err
		}
		if kind == '%' || kind == '|' {
			n *= 2
		}
		if kind == '|' {
			n++ // an attribute stands before the reply that it describes
		}
		for range n {
			if raw, _, err = readReply(r, raw); err != nil {
				return nil, false, noEOF(err)
			}
		}
		return raw, kind == '>', nil
	default:
		return nil, false, fmt.Errorf("%w: reply begins with %q", errNotRESP, kind)
	}
}

// header reads the number in a line like "*3\r\n" that begins with kind.
func header(line []byte, kind byte) (int, error) {
	if line[0] != kind {
		return 0, fmt.Errorf("%w: %q where %q must be", errNotRESP, line[0], kind)
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil || n > maxFrame {
		return 0, fmt.Errorf("%w: length %q", errNotRESP, line[1:len(line)-2])
	}
	return n, nil
}

// readLine appends one line, with its CRLF, to raw.
func readLine(r *bufio.Reader, raw []byte) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		if len(line) > 0 {
			err = noEOF(err)
		}
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: line %q", errNotRESP, line)
	}
	return append(raw, line...), nil
}

func readBytes(r *bufio.Reader, raw []byte, n int) ([]byte, error) {
	start := len(raw)
	raw = append(raw, make([]byte, n)...)
	_, err := io.ReadFull(r, raw[start:])
	return raw, noEOF(err)
}

// noEOF keeps io.EOF for streams that end between frames.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
