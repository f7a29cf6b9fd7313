package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
)

// asService makes the test binary run as the service itself.
const asService = "COUNTERAPI_TEST_SERVICE"

func TestMain(m *testing.M) {
	if os.Getenv(asService) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func service(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, asService+"=1")...)
	return cmd
}

// The service over real HTTP with its embedded Redis, and a request that is under
// way as it is told to stop.
func TestService(t *testing.T) {
	cmd := service(t, "ADDR=127.0.0.1:0", "MAX=2", "TTL=1h", "REDIS_URL=")
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(log)
	require.True(t, lines.Scan())
	var started struct{ Msg, Addr string }
	require.NoError(t, json.Unmarshal(lines.Bytes(), &started))
	require.Equal(t, "listening", started.Msg)
	url := "http://" + started.Addr + "/counters/seats"

	response, err := http.Post(url, "application/json", nil)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.JSONEq(t, `{"id": "seats", "count": 1}`, string(body))

	// The body of this one comes only after SIGTERM, as the handler waits for it.
	reader, writer := io.Pipe()
	handled, slow := make(chan struct{}), make(chan string, 1)
	go func() {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(handled) }})
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, reader)
		if err != nil {
			slow <- err.Error()
			return
		}
		request.Header.Set("Expect", "100-continue")
		response, err := (&http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}).Do(request)
		if err != nil {
			slow <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		slow <- string(text)
	}()
	<-handled
	_, err = writer.Write([]byte(`{"amount"`))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	time.Sleep(100 * time.Millisecond)
	_, err = writer.Write([]byte(`: 1}`))
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.JSONEq(t, `{"id": "seats", "count": 2}`, <-slow)
	_, _ = io.Copy(io.Discard, log)
	require.NoError(t, cmd.Wait(), "it ends by itself, and well")
}

func TestServiceRefusesWrongSettings(t *testing.T) {
	for setting, want := range map[string]string{
		"MAX=many":                           "MAX must be a whole number",
		"MAX=0":                              "a maximum of 0",
		"TTL=15":                             "TTL must be a duration",
		"TTL=1us":                            "a TTL of 1",
		"REDIS_URL=http://user:secret@x":     "REDIS_URL is no URL of a Redis",
		"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1": "REDIS_URL is missing",
	} {
		out, err := service(t, setting).CombinedOutput()
		require.Error(t, err, setting)
		require.Contains(t, string(out), want)
		require.NotContains(t, string(out), "secret")
	}
}

// Under Lambda the process asks the runtime's HTTP API for events. This is that API.
func TestServiceUnderLambda(t *testing.T) {
	server := miniredis.RunT(t)
	text, err := os.ReadFile("testdata/post.json")
	require.NoError(t, err)
	answers := make(chan string, 1)
	var once sync.Once
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/invocation/next"):
			first := false
			once.Do(func() { first = true })
			if !first {
				<-r.Context().Done() // no more events
				return
			}
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", "99999999999999")
			_, _ = w.Write(text)
		case strings.HasSuffix(r.URL.Path, "/response"):
			var body bytes.Buffer
			_, _ = body.ReadFrom(r.Body)
			answers <- body.String()
			w.WriteHeader(http.StatusAccepted)
		default: // the extension that listens for SIGTERM
			w.Header().Set("Lambda-Extension-Identifier", "sigterm")
			if strings.HasSuffix(r.URL.Path, "/event/next") {
				<-r.Context().Done()
			}
		}
	}))
	defer api.Close()
	cmd := service(t, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"), "REDIS_URL=redis://"+server.Addr())
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	select {
	case answer := <-answers:
		require.Contains(t, answer, `"statusCode":200`)
		require.Contains(t, answer, `\"count\":2`)
	case <-time.After(30 * time.Second):
		t.Fatal("no answer")
	}
	server.CheckGet(t, "counterapi:counters:{seats/row 7}", "2")
}
