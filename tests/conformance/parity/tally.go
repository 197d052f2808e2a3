package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

const shownBytes = 1500

// told is all about one case, as text to compare.
type told struct {
	name string
	text string
	code int32
}

// tally counts what was the same on both ways, by subject, and says what was not.
type tally struct {
	subjects []string
	counts   map[string]*count
	verbose  bool
}

// Both refuse: topolet answers what it cannot place before the runtime does, with another code or message.
type count struct{ same, bothRefuse, different int }

func newTally(verbose bool) *tally { return &tally{counts: map[string]*count{}, verbose: verbose} }

func (t *tally) note(subject string, direct, through told) {
	if t.counts[subject] == nil {
		t.subjects = append(t.subjects, subject)
		t.counts[subject] = &count{}
	}
	verdict := "DIFFERENT "
	switch {
	case direct.text == through.text:
		t.counts[subject].same++
		if t.verbose {
			fmt.Printf("same       %s: %s: %s\n", subject, direct.name, shorten(direct.text))
		}
		return
	case direct.code != 0 && codes.Code(through.code) == codes.InvalidArgument:
		t.counts[subject].bothRefuse++
		verdict = "both refuse"
	default:
		t.counts[subject].different++
	}
	fmt.Printf("%s %s: %s\n  direct:  %s\n  through: %s\n", verdict, subject, direct.name,
		shorten(differing(direct.text, through.text)), shorten(differing(through.text, direct.text)))
}

// table prints the counts; with a directory, it also adds a line for each subject to the results of both ways there.
func (t *tally) table(results string) (bool, error) {
	fine := true
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "SUBJECT\tCASES\tSAME\tBOTH REFUSE\tDIFFERENT")
	var direct, through strings.Builder
	for _, subject := range t.subjects {
		c := t.counts[subject]
		cases := c.same + c.bothRefuse + c.different
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\n", subject, cases, c.same, c.bothRefuse, c.different)
		fmt.Fprintf(&direct, "parity: %s (%d cases)\tPASS\n", subject, cases)
		verdict := "PASS"
		if c.different > 0 {
			fine, verdict = false, fmt.Sprintf("FAIL (%d differ)", c.different)
		}
		fmt.Fprintf(&through, "parity: %s (%d cases)\t%s\n", subject, cases, verdict)
	}
	out.Flush()
	if results == "" {
		return fine, nil
	}
	return fine, errors.Join(appendTo(results+"/direct", direct.String()), appendTo(results+"/through", through.String()))
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

func describe(a answer, show func([]byte) string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "code %d, message %q", a.status.GetCode(), a.status.GetMessage())
	for _, detail := range a.status.GetDetails() {
		fmt.Fprintf(&text, ", detail %s %x", detail.GetTypeUrl(), detail.GetValue())
	}
	fmt.Fprintf(&text, ", header %s, trailer %s", pairs(a.header), pairs(a.trailer))
	for _, message := range a.messages {
		fmt.Fprintf(&text, "\n    %s", show(message))
	}
	return text.String()
}

// The details are compared as such. The content type comes with whichever of the two is sent first.
func pairs(md metadata.MD) string {
	md = md.Copy()
	md.Delete("grpc-status-details-bin")
	md.Delete("content-type")
	return fmt.Sprint(md)
}

// exactly shows bytes so that one bit of difference can be seen.
func exactly(message []byte) string { return fmt.Sprintf("%x", message) }

// as shows a message's content; what the type does not know is shown as bytes.
func as(message proto.Message) func([]byte) string {
	return func(data []byte) string {
		decoded := message.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(data, decoded); err != nil {
			return exactly(data)
		}
		return readable(decoded)
	}
}

func shorten(text string) string {
	if len(text) <= shownBytes {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:shownBytes], len(text))
}

// differing leaves out what long texts have in common at the beginning.
func differing(text, other string) string {
	common := 0
	for common < min(len(text), len(other)) && text[common] == other[common] {
		common++
	}
	const context = 200
	if len(text) <= shownBytes || common <= context {
		return text
	}
	return "…" + text[common-context:]
}
