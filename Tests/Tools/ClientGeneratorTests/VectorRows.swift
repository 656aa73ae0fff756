import Bytes
import Foundation
import SharedState
import Trebuchet
import TrebuchetWire

/// A value in a row of the table of types: its wire form, and the value that TypeScript must read.
struct VectorRow {
    /// The method of `Vectors` that receives it.
    let method: String
    /// The output of the wire's coder.
    let json: String
    /// The value as read, in JSON: dates, bytes and similar types are objects with a `type`.
    let value: String

    /// - Parameter isRoundTrip: true if Swift decodes an equal value; a nil in two optionals loses one of them.
    init<Value: Codable>(_ method: String, _ value: Value, reads: String, isRoundTrip: Bool = true) throws {
        self.method = method
        let coder = ValueCoder()
        let text = try Self.written(value, coder)
        let read = try Array(text.utf8).withUnsafeBytes { try coder.decode(Value.self, from: $0) }
        let again = try Self.written(read, coder)
        guard (text == again) == isRoundTrip else { throw Unstable(text: text, again: again) }
        json = text
        self.value = reads
    }

    private static func written<Value: Codable>(_ value: Value, _ coder: ValueCoder) throws -> String {
        var buffer = ByteBuffer()
        try coder.encode(value, into: &buffer)
        var rest = Substring(String(decoding: buffer.bytes, as: UTF8.self))
        return sorted(&rest)
    }

    struct Unstable: Error {
        let text: String
        let again: String
    }

    /// The first value of a text, with members sorted by name: the coder's order is arbitrary.
    private static func sorted(_ rest: inout Substring) -> String {
        switch rest.first {
        case "{":
            let members = list(&rest, "}") { rest in
                let name = string(&rest)
                rest.removeFirst()
                return "\(name):\(sorted(&rest))"
            }
            return "{" + members.sorted().joined(separator: ",") + "}"
        case "[": return "[" + list(&rest, "]") { sorted(&$0) }.joined(separator: ",") + "]"
        case "\"": return string(&rest)
        default:
            let text = rest.prefix { !",]}".contains($0) }
            rest = rest.dropFirst(text.count)
            return String(text)
        }
    }

    private static func list(
        _ rest: inout Substring, _ end: Character, _ element: (inout Substring) -> String
    ) -> [String] {
        var elements: [String] = []
        rest.removeFirst()
        while rest.first != end {
            if rest.first == "," { rest.removeFirst() }
            elements.append(element(&rest))
        }
        rest.removeFirst()
        return elements
    }

    private static func string(_ rest: inout Substring) -> String {
        var text = String(rest.removeFirst())
        while let next = rest.popFirst() {
            text.append(next)
            if next == "\\", let escaped = rest.popFirst() {
                text.append(escaped)
            } else if next == "\"" {
                break
            }
        }
        return text
    }
}

extension VectorRow {
    static func all() throws -> [VectorRow] {
        let then = Date(timeIntervalSince1970: 1_769_903_999.123)
        let id = UUID(uuidString: "0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A2B3C")!
        let date = #"{"type":"Date","milliseconds":1769903999123}"#
        let idText = #""0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A2B3C""#
        let item = Item(id: id, at: then)
        let itemText = #"{"id":\#(idText),"at":\#(date)}"#
        let plainValues = try [
            VectorRow("text", "a \"b\"\\\n\u{1}/é🐶\u{2028}", reads: #""a \"b\"\\\n\u0001/é🐶\u2028""#),
            VectorRow("text", "", reads: #""""#),
            VectorRow("flag", true, reads: "true"),
            VectorRow("whole", -9_007_199_254_740_991, reads: "-9007199254740991"),
            VectorRow("byte", 255 as UInt8, reads: "255"),
            VectorRow("double", 0.1, reads: "0.1"),
            VectorRow("double", -1e300, reads: "-1e300"),
            VectorRow("wide", 7 as Int64, reads: #"{"type":"bigint","text":"7"}"#),
            VectorRow("wide", Int64.min, reads: #"{"type":"bigint","text":"-9223372036854775808"}"#),
            VectorRow(
                "unsigned", [0, UInt64.max],
                reads: #"[{"type":"bigint","text":"0"},{"type":"bigint","text":"18446744073709551615"}]"#),
            VectorRow("decimal", Decimal(string: "19.99")!, reads: #""19.99""#),
            VectorRow(
                "decimal", Decimal(string: "-1234567890123456789.123456789")!,
                reads: #""-1234567890123456789.123456789""#),
            VectorRow("date", then, reads: date),
            VectorRow("date", Date(timeIntervalSince1970: -0.5), reads: #"{"type":"Date","milliseconds":-500}"#),
            VectorRow("dates", [then, nil], reads: "[\(date),null]"),
            VectorRow("data", Data([0, 1, 254, 255]), reads: #"{"type":"Data","bytes":[0,1,254,255]}"#),
            VectorRow("data", Data(), reads: #"{"type":"Data","bytes":[]}"#),
            VectorRow("uuid", id, reads: idText),
            VectorRow("url", URL(string: "https://example.org/a?b=c#d")!, reads: #""https://example.org/a?b=c#d""#),
            VectorRow("maybe", 3 as Int?, reads: "3"),
            VectorRow("maybe", nil as Int?, reads: "null"),
            VectorRow("maybeDate", then as Date?, reads: date),
            VectorRow("maybeDate", nil as Date?, reads: "null"),
            VectorRow("nested", [1, .some(nil), nil] as [Int??], reads: "[1,null,null]"),
            VectorRow("list", ["a", "b"], reads: #"["a","b"]"#),
            VectorRow("only", [5] as Set<Int>, reads: "[5]"),
            VectorRow("range", 2..<5, reads: "[2,5]"),
            VectorRow("span", then...then, reads: "[\(date),\(date)]"),
        ]
        let dictionaries = try [
            VectorRow("byName", ["a": then], reads: #"{"a":\#(date)}"#),
            VectorRow("byName", ["__proto__": then], reads: #"{"__proto__":\#(date)}"#),
            VectorRow("byNumber", [7: "seven"], reads: #"{"7":"seven"}"#),
            VectorRow("byColour", [Colour.green: then], reads: #"{"type":"Map","entries":[["grün",\#(date)]]}"#),
            VectorRow("byColour", [Colour: Date](), reads: #"{"type":"Map","entries":[]}"#),
            VectorRow("bySize", [Size.large: then], reads: #"{"large":\#(date)}"#),
            VectorRow("byID", [id: 1], reads: #"{"type":"Map","entries":[[\#(idText),1]]}"#),
            VectorRow("byByte", [7: then] as [UInt8: Date], reads: #"{"type":"Map","entries":[[7,\#(date)]]}"#),
        ]
        let enums = try [
            VectorRow("colour", Colour.red, reads: #""red""#),
            VectorRow("colour", Colour.default, reads: #""default""#),
            VectorRow(
                "tolerant", [.known(.red), .unknown(.string("mauve"))] as [Tolerant<Colour>], reads: #"["red","mauve"]"#
            ),
            VectorRow("level", Level.middle, reads: "0"),
            VectorRow("level", Level.higher, reads: "11"),
            VectorRow("ratio", Ratio.half, reads: "0.5"),
            VectorRow("ratio", Ratio.whole, reads: "1"),
            VectorRow(
                "choice",
                [
                    Choice.load(key: "k", at: then), .point(1, 2), .mixed(then, note: nil), .mixed(then, note: "n"),
                    .moved(to: 4), .moved(to: nil), .optional(nil), .optional(then), .none,
                ],
                reads: """
                    [{"load":{"key":"k","at":\(date)}},{"point":{"_0":1,"_1":2}},{"mixed":{"_0":\(date)}},\
                    {"mixed":{"_0":\(date),"note":"n"}},{"moved":{"target":4}},{"moved":{}},{"optional":{}},\
                    {"optional":{"_0":\(date)}},{"none":{}}]
                    """),
            VectorRow("plain", [Plain.on, .off], reads: #"[{"on":{}},{"off":{}}]"#),
            VectorRow(
                "formula", Formula.sum(.value(1), .value(Decimal(string: "0.25")!)),
                reads: #"{"sum":{"_0":{"value":{"_0":"1"}},"_1":{"value":{"_0":"0.25"}}}}"#),
        ]
        let structs = try [
            VectorRow(
                "renamed", [Renamed(isDone: true, when: then), Renamed(isDone: false, when: nil)],
                reads: #"[{"is_done":true,"at-what time":\#(date),"hidden":"h"},{"is_done":false,"hidden":"h"}]"#),
            VectorRow("account", AccountID(rawValue: "a1"), reads: #""a1""#),
            VectorRow("rights", Rights.read, reads: "1"),
            VectorRow("moment", Moment(rawValue: then), reads: #"{"rawValue":\#(date)}"#),
            VectorRow("event", Event(name: "e", at: then), reads: #"{"name":"e","at":\#(date)}"#),
            VectorRow(
                "sparse",
                [
                    Sparse(a: nil, b: nil, c: nil, d: nil, e: nil),
                    Sparse(a: 1, b: then, c: 2, d: [then, nil], e: "e"),
                ],
                reads: #"[{},{"a":1,"b":\#(date),"c":2,"d":[\#(date),null],"e":"e"}]"#),
            VectorRow(
                "sparse", [Sparse(a: nil, b: nil, c: .some(nil), d: nil, e: nil)], reads: #"[{"c":null}]"#,
                isRoundTrip: false),
            VectorRow(
                "keys", Keys(texts: ["a": 1], pairs: [.red: then], accounts: [AccountID(rawValue: "x"): Data([1])]),
                reads: """
                    {"texts":{"a":1},"pairs":{"type":"Map","entries":[["red",\(date)]]},\
                    "accounts":{"type":"Map","entries":[["x",{"type":"Data","bytes":[1]}]]}}
                    """),
            VectorRow(
                "page", Page(items: [Event(name: "a", at: then)], next: Event(name: "b", at: then), cursor: nil),
                reads: #"{"items":[{"name":"a","at":\#(date)}],"next":{"name":"b","at":\#(date)}}"#),
            VectorRow(
                "optionalPage", Page<Date?>(items: [nil, then], next: nil, cursor: "c"),
                reads: #"{"items":[null,\#(date)],"next":null,"cursor":"c"}"#),
            VectorRow(
                "box", Box<Date>.Inner(value: then, others: ["o": then]),
                reads: #"{"value":\#(date),"others":{"o":\#(date)}}"#),
            VectorRow(
                "tree", Tree(at: then, children: [Tree(at: then, children: [])]),
                reads: #"{"at":\#(date),"children":[{"at":\#(date),"children":[]}]}"#),
            VectorRow(
                "record", Record(name: "r", until: nil, items: [item]),
                reads: #"{"name":"r","until":null,"items":[\#(itemText)]}"#),
            VectorRow("keyed", [item] as KeyedCollection<Item>, reads: "[\(itemText)]"),
            VectorRow("identified", [item] as IdentifiedArrayOf<Item>, reads: "[\(itemText)]"),
            VectorRow("node", Node("a", Node("b", nil)), reads: #"{"name":"a","next":{"name":"b"}}"#),
            VectorRow(
                "unusual", Unusual(class: 1, __proto__: then, constructor: then, naïve: "n", 🐶: then, in: [then]),
                reads: """
                    {"class":1,"__proto__":\(date),"constructor":\(date),"naïve":"n","🐶":\(date),"in":[\(date)]}
                    """),
            VectorRow("empty", Empty(), reads: "{}"),
            VectorRow("own", Fahrenheit(celsius: 100), reads: #"{"degrees":212}"#),
            VectorRow("ids", item.id, reads: idText),
        ]
        return plainValues + dictionaries + enums + structs
    }
}
