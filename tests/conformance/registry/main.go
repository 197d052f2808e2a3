// Serves one image, out of a docker archive, under whatever name it is asked for: pulls need a registry.
package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// image is all blobs by digest, and which of them is the manifest.
type image struct {
	blobs    map[string][]byte
	manifest string
}

func main() {
	archive := flag.String("archive", "", "a docker archive with one image")
	addressFile := flag.String("address-file", "", "where the address is written once it is listened on")
	flag.Parse()
	if err := serve(*archive, *addressFile); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func serve(archive, addressFile string) error {
	files, err := readArchive(archive)
	if err != nil {
		return err
	}
	served, err := assemble(files)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := os.WriteFile(addressFile, []byte(listener.Addr().String()), 0o600); err != nil {
		return err
	}
	return http.Serve(listener, served)
}

func readArchive(path string) (map[string][]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	files := map[string][]byte{}
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			return nil, err
		}
	}
}

func assemble(files map[string][]byte) (image, error) {
	var contents []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &contents); err != nil {
		return image{}, fmt.Errorf("manifest.json: %w", err)
	}
	made := image{blobs: map[string][]byte{}}
	// With a line more it is an image of its own: removing it must not take the archive's away.
	written := manifest{2, manifestType, made.add(configType, append(files[contents[0].Config], '\n')), nil}
	for _, layer := range contents[0].Layers {
		written.Layers = append(written.Layers, made.add(layerType, files[layer]))
	}
	bytes, err := json.Marshal(written)
	made.manifest = made.add(manifestType, bytes).Digest
	return made, err
}

func (i image) add(mediaType string, blob []byte) descriptor {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(blob))
	i.blobs[digest] = blob
	return descriptor{mediaType, digest, len(blob)}
}

func (i image) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	parts := strings.Split(request.URL.Path, "/")
	wanted, kind := parts[len(parts)-1], parts[max(0, len(parts)-2)]
	contentType := "application/octet-stream"
	if kind == "manifests" {
		contentType = manifestType
		if !strings.HasPrefix(wanted, "sha256:") {
			wanted = i.manifest
		}
	}
	blob, found := i.blobs[wanted]
	if !found && strings.Trim(request.URL.Path, "/") != "v2" {
		http.NotFound(out, request)
		return
	}
	out.Header().Set("Content-Type", contentType)
	out.Header().Set("Docker-Content-Digest", wanted)
	out.Header().Set("Content-Length", fmt.Sprint(len(blob)))
	if request.Method != http.MethodHead {
		_, _ = out.Write(blob)
	}
}
