import TrebuchetWire

/// The equality of `test`, the notation of paths, and the form of patches.
extension PatchCase {
    static let comparisons: [PatchCase] = [
        holds("a string", #"{"a":"x"}"#, "/a", #""x""#),
        holds("the whole document", #"{"a":[1,2]}"#, "", #" { "a" : [ 1 , 2 ] } "#),
        holds(
            "the order of members does not matter", #"{"a":1,"b":{"c":2,"d":3},"e":4}"#, "",
            #"{"e":4,"b":{"d":3,"c":2},"a":1}"#),
        holds("an empty object", #"{"a":{}}"#, "/a", "{}"),
        holds("an empty array", #"{"a":[]}"#, "/a", "[]"),
        holds("null", #"{"a":null}"#, "/a", "null"),
        holds("a fraction of zero", "[1]", "/0", "1.0"),
        holds("an exponent", "[1500]", "/0", "1.5e3"),
        holds("a negative exponent", "[0.01]", "/0", "1E-2"),
        holds("no negative zero", "[0]", "/0", "-0.0e5"),
        holds("more digits than a double has", "[12345678901234567890123]", "/0", "12345678901234567890123"),
        holds("an escape", #"["é/\u0041\ud83d\ude00"]"#, "/0", #""\u00e9\/A😀""#),
        holds("an escape in a name", #"[{"\u0061":1}]"#, "/0", #"{"a":1}"#),
        holds("the result of an operation", #"{"a":1}"#, "/a", "1"),
        differs("another string", #"{"a":"x"}"#, "/a", #""y""#),
        differs("a string that looks like a number", "[1]", "/0", #""1""#),
        differs("numbers beyond a double", "[9007199254740993]", "/0", "9007199254740992"),
        differs("another sign", "[1]", "/0", "-1"),
        differs("another power of ten", "[1e400]", "/0", "1e401"),
        differs("null and false", "[null]", "/0", "false"),
        differs("null and nothing", "[{}]", "/0", "null"),
        differs("an object and an array", "[{}]", "/0", "[]"),
        differs("the order of elements", "[[1,2]]", "/0", "[2,1]"),
        differs("an array that is longer", "[[1,2]]", "/0", "[1]"),
        differs("an array that ends", "[[1]]", "/0", "[1,2]"),
        differs("a member more", #"[{"a":1,"b":2}]"#, "/0", #"{"a":1}"#),
        differs("a member less", #"[{"b":2}]"#, "/0", #"{"a":1,"b":2}"#),
        differs("a member of another name", #"[{"a":1}]"#, "/0", #"{"b":1}"#),
        differs("a member twice", #"[{"a":1,"b":1}]"#, "/0", #"{"b":1,"b":1}"#),
        differs("letters that look the same", #"["\u00e9"]"#, "/0", #""e\u0301""#),
        fails("a test of nothing", "{}", #"[{"op":"test","path":"/a","value":null}]"#),
        fails("a test behind the end", "[1]", #"[{"op":"test","path":"/1","value":1}]"#),
        fails(
            "operations before a failed test are undone", "[1]",
            #"[{"op":"replace","path":"/0","value":2},{"op":"test","path":"/0","value":1}]"#, .testFailed),
        gives(
            "a test of a changed value", #"{"a":[1]}"#,
            #"[{"op":"add","path":"/a/-","value":2},{"op":"test","path":"/a","value":[1,2]},{"op":"test","path":"","value":{"a":[1,2]}},{"op":"remove","path":"/a/0"}]"#,
            #"{"a":[2]}"#),
    ]

    static let paths: [PatchCase] = [
        holds("a tilde", #"{"~":1,"/":2}"#, "/~0", "1"),
        holds("a slash", #"{"~":1,"/":2}"#, "/~1", "2"),
        holds("a tilde before a one", #"{"~1":10}"#, "/~01", "10"),
        holds("both", #"{"a~b/c":1}"#, "/a~0b~1c", "1"),
        holds("a percent sign", #"{"c%d":2}"#, "/c%d", "2"),
        holds("a space", #"{" ":7}"#, "/ ", "7"),
        holds("a quote", #"{"k\"l":6}"#, #"/k\"l"#, "6"),
        holds("a backslash", #"{"i\\j":5}"#, #"/i\\j"#, "5"),
        holds("a name that is nothing", #"{"":0}"#, "/", "0"),
        holds("letters of the world", #"{"ключ":{"鍵":1}}"#, "/ключ/鍵", "1"),
        holds("an escaped path", #"{"a":{"b":1}}"#, #"\u002fa\/b"#, "1"),
        holds("an escaped name in the document", #"{"\u0061\/b":1}"#, "/a~1b", "1"),
        holds("an index and a name", #"{"0":[{"0":1}]}"#, "/0/0/0", "1"),
        gives(
            "a new name is escaped", "{}", #"[{"op":"add","path":"/\"~1\\~0\u0001é","value":1}]"#,
            #"{"\"/\\~\u0001é":1}"#),
        gives(
            "a removed name is found escaped", #"{"\u00e9":1,"b":2}"#, #"[{"op":"remove","path":"/é"}]"#, #"{"b":2}"#),
        fails("no slash", #"{"a":1}"#, #"[{"op":"remove","path":"a"}]"#, .malformedPatch),
        fails("a tilde alone", #"{"~":1}"#, #"[{"op":"remove","path":"/~"}]"#, .malformedPatch),
        fails("a tilde before another letter", #"{"~2":1}"#, #"[{"op":"remove","path":"/~2"}]"#, .malformedPatch),
        fails("a 'from' without a slash", #"{"a":1}"#, #"[{"op":"copy","from":"a","path":"/b"}]"#, .malformedPatch),
        fails("the form of a URI's fragment", #"{"a":1}"#, ##"[{"op":"remove","path":"#/a"}]"##, .malformedPatch),
    ]

    static let shapes: [PatchCase] = [
        malformed("an object", #"{"op":"remove","path":"/a"}"#),
        malformed("a string", #""op""#),
        malformed("nothing", ""),
        malformed("no end", "["),
        malformed("a comma too many", #"[{"op":"remove","path":"/a"},]"#),
        malformed("more behind the end", "[] []"),
        malformed("an operation that is a string", #"["remove"]"#),
        malformed("an operation that is an array", #"[["remove","/a"]]"#),
        malformed("no op", #"[{"path":"/a"}]"#),
        malformed("an op that is not known", #"[{"op":"spam","path":"/a"}]"#),
        malformed("an op in capitals", #"[{"op":"Remove","path":"/a"}]"#),
        malformed("an op that is no string", #"[{"op":1,"path":"/a"}]"#),
        malformed("no path", #"[{"op":"remove"}]"#),
        malformed("a path that is null", #"[{"op":"remove","path":null}]"#),
        malformed("a path that is a number", #"[{"op":"add","path":1,"value":1}]"#),
        malformed("add without a value", #"[{"op":"add","path":"/a"}]"#),
        malformed("replace without a value", #"[{"op":"replace","path":"/a"}]"#),
        malformed("test without a value", #"[{"op":"test","path":"/a"}]"#),
        malformed("move without from", #"[{"op":"move","path":"/a"}]"#),
        malformed("copy without from", #"[{"op":"copy","path":"/a"}]"#),
        malformed("a from that is null", #"[{"op":"copy","from":null,"path":"/a"}]"#),
        malformed("op twice", #"[{"op":"add","path":"/b","value":1,"op":"remove"}]"#),
        malformed("path twice, once escaped", #"[{"op":"remove","path":"/a","p\u0061th":"/a"}]"#),
        malformed("a value that is no JSON", #"[{"op":"add","path":"/a","value":01}]"#),
        malformed("the last of many", #"[{"op":"remove","path":"/a"},{"op":"add","path":"/a"}]"#),
        gives("an escaped op", #"{"a":1}"#, #"[{"\u006fp":"r\u0065move","path":"/a"}]"#, "{}"),
        gives("the order of members does not matter", "{}", #"[{"value":1,"path":"/a","op":"add"}]"#, #"{"a":1}"#),
        fails(
            "a name twice on the path", #"{"a":{"b":1},"a":{"b":2}}"#, #"[{"op":"remove","path":"/a/b"}]"#,
            .malformedDocument),
        fails(
            "a name twice at its end", #"{"a":1,"\u0061":2}"#, #"[{"op":"add","path":"/a","value":3}]"#,
            .malformedDocument),
        gives(
            "a name twice elsewhere", #"{"a":1,"b":1,"b":2}"#, #"[{"op":"replace","path":"/a","value":3}]"#,
            #"{"a":3,"b":1,"b":2}"#),
        fails("a document that is no JSON", #"{"a":1,}"#, #"[{"op":"remove","path":"/a"}]"#, .malformedDocument),
        fails("a document with more behind it", #"{"a":1} 2"#, #"[{"op":"remove","path":"/a"}]"#, .malformedDocument),
        fails("an empty document", "", #"[{"op":"add","path":"/a","value":1}]"#, .malformedDocument),
    ]

    private static func test(_ path: String, _ value: String) -> String {
        #"[{"op":"test","path":"\#(path)","value":\#(value)}]"#
    }

    private static func holds(_ what: String, _ document: String, _ path: String, _ value: String) -> PatchCase {
        gives(what, document, test(path, value), document)
    }

    private static func differs(_ what: String, _ document: String, _ path: String, _ value: String) -> PatchCase {
        fails(what, document, test(path, value), .testFailed)
    }

    private static func malformed(_ what: String, _ patch: String) -> PatchCase {
        fails(what, #"{"a":1}"#, patch, .malformedPatch)
    }
}
