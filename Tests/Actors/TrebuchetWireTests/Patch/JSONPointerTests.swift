import Testing
import TrebuchetWire

@Suite("JSON Pointer")
struct JSONPointerTests {
    @Test(
        "a pointer is encoded as it was decoded", arguments: ["", "/", "//", "/a/0/-", "/~01~1/~0~0", "/ü/😀", "/%20"])
    func description(_ text: String) {
        #expect(JSONPointer(text)?.description == text)
    }

    @Test(
        "a pointer starts with a slash, and its tildes are escapes",
        arguments: ["a", "a/b", " /a", "/~", "/~2", "/a~/b"])
    func refused(_ text: String) { #expect(JSONPointer(text) == nil) }

    static let text = #" {"a":[10, {"b":"x"} ,[]],"":{"":0},"m~n/o":1,"\u00e9":2,"d":1,"d":2,"-":[3]} "#

    @Test(
        "a value is found by its range",
        arguments: [
            ("/a/0", "10"), ("/a/1", #"{"b":"x"}"#), ("/a/1/b", #""x""#), ("/a/2", "[]"), ("/", #"{"":0}"#),
            ("//", "0"),
            ("/m~0n~1o", "1"), ("/é", "2"), ("/-/0", "3"), ("/a", #"[10, {"b":"x"} ,[]]"#),
        ])
    func found(_ path: String, _ value: String) { #expect(value == lookup(path, Self.text)) }

    @Test("the empty pointer finds the text without surrounding white space")
    func whole() { #expect(lookup("", " [1] ") == "[1]") }

    @Test(
        "a missing value is not found",
        arguments: ["/b", "/a/3", "/a/-", "/a/00", "/a/-1", "/a/0/0", "/a/1/b/c", "/a/2/0", "/m~0n", "/d", "///"])
    func absent(_ path: String) { #expect(lookup(path, Self.text) == nil) }

    @Test("a pointer finds no value in invalid JSON", arguments: [#"{"a":1"#, #"{"a":1}}"#, #"{"a":1,"b":tru}"#, ""])
    func noJSON(_ text: String) { #expect(lookup("/a", text) == nil) }

    @Test("nesting has the limit of messages")
    func depth() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        let path = String(repeating: "/0", count: 63)
        #expect(lookup(path, nested(64)) == "[]")
        #expect(lookup(path + "/0", nested(65)) == nil)
        #expect(lookup("/0", nested(65)) == nil)
        let value = String(repeating: "[", count: 65) + "1" + String(repeating: "]", count: 65)
        #expect(lookup(path + "/0/0", value) == nil)
    }

    private func lookup(_ path: String, _ text: String) -> String? {
        let bytes = Array(text.utf8)
        let range = bytes.withUnsafeBytes { JSONPointer(path)?.lookup(in: $0) }
        return range.map { String(decoding: bytes[$0], as: UTF8.self) }
    }
}
