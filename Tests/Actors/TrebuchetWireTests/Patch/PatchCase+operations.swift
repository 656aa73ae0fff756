import TrebuchetWire

/// The results of each operation, and its failures.
extension PatchCase {
    static let additions: [PatchCase] = [
        gives("an empty patch changes nothing", #"{"a":1}"#, "[]", #"{"a":1}"#),
        gives("an empty patch of an array", "[1,2]", " [ ] ", "[1,2]"),
        gives("a member is added", #"{"a":1}"#, #"[{"op":"add","path":"/b","value":2}]"#, #"{"a":1,"b":2}"#),
        gives("a member of an empty object", "{}", #"[{"op":"add","path":"/a","value":[]}]"#, #"{"a":[]}"#),
        gives("a member that is there is replaced", #"{"a":1}"#, #"[{"op":"add","path":"/a","value":2}]"#, #"{"a":2}"#),
        gives("a member named nothing", "{}", #"[{"op":"add","path":"/","value":1}]"#, #"{"":1}"#),
        gives("below a member named nothing", #"{"":{}}"#, #"[{"op":"add","path":"//a","value":1}]"#, #"{"":{"a":1}}"#),
        gives(
            "a path that ends with a slash", #"{"a":{}}"#, #"[{"op":"add","path":"/a/","value":1}]"#, #"{"a":{"":1}}"#),
        gives("a name that is a number", "{}", #"[{"op":"add","path":"/0","value":1}]"#, #"{"0":1}"#),
        gives("a name that is a dash", "{}", #"[{"op":"add","path":"/-","value":1}]"#, #"{"-":1}"#),
        gives("a name with a leading zero", "{}", #"[{"op":"add","path":"/01","value":1}]"#, #"{"01":1}"#),
        gives("null is a value", "{}", #"[{"op":"add","path":"/a","value":null}]"#, #"{"a":null}"#),
        gives("true is a value", #"{"a":1}"#, #"[{"op":"add","path":"/b","value":true}]"#, #"{"a":1,"b":true}"#),
        gives("false is a value", #"{"a":1}"#, #"[{"op":"add","path":"/b","value":false}]"#, #"{"a":1,"b":false}"#),
        gives(
            "an element is inserted before another", #"["b"]"#, #"[{"op":"add","path":"/0","value":"a"}]"#,
            #"["a","b"]"#),
        gives("an element in the middle", "[1,3]", #"[{"op":"add","path":"/1","value":2}]"#, "[1,2,3]"),
        gives("an element behind the last, by index", "[1]", #"[{"op":"add","path":"/1","value":2}]"#, "[1,2]"),
        gives("an element behind the last, by dash", "[1]", #"[{"op":"add","path":"/-","value":2}]"#, "[1,2]"),
        gives("an element of an empty array", "[]", #"[{"op":"add","path":"/0","value":1}]"#, "[1]"),
        gives("a dash in an empty array", "[]", #"[{"op":"add","path":"/-","value":1}]"#, "[1]"),
        gives("an array is one element", "[1]", #"[{"op":"add","path":"/0","value":[2,3]}]"#, "[[2,3],1]"),
        gives(
            "far down", #"[1,{"a":[{"b":[]}]}]"#, #"[{"op":"add","path":"/1/a/0/b/-","value":9}]"#,
            #"[1,{"a":[{"b":[9]}]}]"#),
        gives("the whole document", #"{"a":1}"#, #"[{"op":"add","path":"","value":[2]}]"#, "[2]"),
        gives("a scalar document becomes an object", "3", #"[{"op":"add","path":"","value":{}}]"#, "{}"),
        gives(
            "one after the other", "[]",
            #"[{"op":"add","path":"/0","value":1},{"op":"add","path":"/0","value":2},{"op":"add","path":"/1","value":3}]"#,
            "[2,3,1]"),
        gives(
            "into a value just added", "{}",
            #"[{"op":"add","path":"/a","value":{"b":[]}},{"op":"add","path":"/a/b/-","value":1}]"#, #"{"a":{"b":[1]}}"#),
        gives(
            "members that are not known are ignored", "{}",
            #"[{"op":"add","x":{"y":[1]},"path":"/a","from":7,"value":1}]"#, #"{"a":1}"#),
        fails("behind the end", "[1]", #"[{"op":"add","path":"/2","value":2}]"#),
        fails("far behind the end", "[1]", #"[{"op":"add","path":"/100000000000000000000","value":2}]"#),
        fails("a negative index", "[1]", #"[{"op":"add","path":"/-1","value":2}]"#),
        fails("an index with a leading zero", "[1,2]", #"[{"op":"add","path":"/01","value":2}]"#),
        fails("an index with a plus", "[1,2]", #"[{"op":"add","path":"/+1","value":2}]"#),
        fails("an index with a fraction", "[1,2]", #"[{"op":"add","path":"/1.0","value":2}]"#),
        fails("an index with an exponent", "[1,2]", #"[{"op":"add","path":"/1e0","value":2}]"#),
        fails("a name in an array", "[1]", #"[{"op":"add","path":"/a","value":2}]"#),
        fails("an empty index in an array", "[1]", #"[{"op":"add","path":"/","value":2}]"#),
        fails("below a member that is not there", #"{"a":1}"#, #"[{"op":"add","path":"/b/c","value":2}]"#),
        fails("below a number", #"{"a":1}"#, #"[{"op":"add","path":"/a/b","value":2}]"#),
        fails("below a string", #"["ab"]"#, #"[{"op":"add","path":"/0/0","value":2}]"#),
        fails("below a scalar document", "1", #"[{"op":"add","path":"/a","value":2}]"#),
        fails("below a dash", "[[]]", #"[{"op":"add","path":"/-/0","value":2}]"#),
    ]

    static let removals: [PatchCase] = [
        gives("a member is removed", #"{"a":1,"b":2}"#, #"[{"op":"remove","path":"/a"}]"#, #"{"b":2}"#),
        gives("the only member", #"{"a":1}"#, #"[{"op":"remove","path":"/a"}]"#, "{}"),
        gives("a null", #"{"a":null}"#, #"[{"op":"remove","path":"/a"}]"#, "{}"),
        gives("a large part", #"{"a":{"b":[1,{"c":2}]},"d":0}"#, #"[{"op":"remove","path":"/a"}]"#, #"{"d":0}"#),
        gives("the first element", "[1,2,3]", #"[{"op":"remove","path":"/0"}]"#, "[2,3]"),
        gives("an element in the middle", "[1,2,3]", #"[{"op":"remove","path":"/1"}]"#, "[1,3]"),
        gives("the last element", "[1,2,3]", #"[{"op":"remove","path":"/2"}]"#, "[1,2]"),
        gives(
            "one index again and again", "[1,2,3,4]", #"[{"op":"remove","path":"/1"},{"op":"remove","path":"/1"}]"#,
            "[1,4]"),
        gives("all of them", "[1,2]", #"[{"op":"remove","path":"/1"},{"op":"remove","path":"/0"}]"#, "[]"),
        gives("far down", #"{"a":[{"b":1,"c":2}]}"#, #"[{"op":"remove","path":"/a/0/b"}]"#, #"{"a":[{"c":2}]}"#),
        gives("a value in the operation is ignored", #"{"a":1}"#, #"[{"op":"remove","path":"/a","value":3}]"#, "{}"),
        fails("a member that is not there", #"{"a":1}"#, #"[{"op":"remove","path":"/b"}]"#),
        fails("a member twice", #"{"a":1}"#, #"[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]"#),
        fails("behind the end", "[1]", #"[{"op":"remove","path":"/1"}]"#),
        fails("by dash", "[1]", #"[{"op":"remove","path":"/-"}]"#),
        fails("an index with an exponent", "[1,2]", #"[{"op":"remove","path":"/1e0"}]"#),
        fails("an index with a leading zero", "[1,2]", #"[{"op":"remove","path":"/00"}]"#),
        fails("below something missing", #"{"a":1}"#, #"[{"op":"remove","path":"/b/c"}]"#),
        fails("the whole document", "[1]", #"[{"op":"remove","path":""}]"#),
    ]

    static let replacements: [PatchCase] = [
        gives(
            "a member is replaced", #"{"a":1,"b":2}"#, #"[{"op":"replace","path":"/a","value":3}]"#, #"{"a":3,"b":2}"#),
        gives("an element", "[1,2,3]", #"[{"op":"replace","path":"/1","value":"x"}]"#, #"[1,"x",3]"#),
        gives("an element becomes an array", "[1]", #"[{"op":"replace","path":"/0","value":[1]}]"#, "[[1]]"),
        gives("null becomes a value", #"{"a":null}"#, #"[{"op":"replace","path":"/a","value":1}]"#, #"{"a":1}"#),
        gives("a value becomes null", "[1]", #"[{"op":"replace","path":"/0","value":null}]"#, "[null]"),
        gives("the whole document", #"{"a":1}"#, #"[{"op":"replace","path":"","value":[]}]"#, "[]"),
        gives("a document that is a string", #""a""#, #"[{"op":"replace","path":"","value":"b"}]"#, #""b""#),
        gives(
            "the whole, then a part of it", "1",
            #"[{"op":"replace","path":"","value":[0]},{"op":"replace","path":"/0","value":1}]"#, "[1]"),
        gives(
            "a part, then its parent", #"{"a":{"b":1}}"#,
            #"[{"op":"replace","path":"/a/b","value":2},{"op":"replace","path":"/a","value":3}]"#, #"{"a":3}"#),
        gives(
            "spaces around values stay where they were", " { \"a\" : [ 1 , 2 ] , \"b\" : 0 } ",
            #"[{"op":"replace","path":"/a/1","value": 3 }]"#, #"{"a":[1,3],"b":0}"#),
        fails("a member that is not there", "{}", #"[{"op":"replace","path":"/a","value":1}]"#),
        fails("an element behind the last", "[1]", #"[{"op":"replace","path":"/1","value":1}]"#),
        fails("by dash", "[1]", #"[{"op":"replace","path":"/-","value":1}]"#),
        fails("below something missing", #"{"a":{}}"#, #"[{"op":"replace","path":"/a/b/c","value":1}]"#),
        fails("an index with letters", "[1]", #"[{"op":"replace","path":"/0x","value":1}]"#),
    ]

    static let moves: [PatchCase] = [
        gives(
            "a member gets another name", #"{"a":1,"b":2}"#, #"[{"op":"move","from":"/a","path":"/c"}]"#,
            #"{"b":2,"c":1}"#),
        gives(
            "to another object", #"{"a":{"b":1},"c":{}}"#, #"[{"op":"move","from":"/a/b","path":"/c/d"}]"#,
            #"{"a":{},"c":{"d":1}}"#),
        gives("over a member", #"{"a":1,"b":2}"#, #"[{"op":"move","from":"/a","path":"/b"}]"#, #"{"b":1}"#),
        gives("to where it is", #"{"a":1}"#, #"[{"op":"move","from":"/a","path":"/a"}]"#, #"{"a":1}"#),
        gives("the whole to where it is", "[1]", #"[{"op":"move","from":"","path":""}]"#, "[1]"),
        gives("an element to the back", "[1,2,3]", #"[{"op":"move","from":"/0","path":"/2"}]"#, "[2,3,1]"),
        gives("an element to the front", "[1,2,3]", #"[{"op":"move","from":"/2","path":"/0"}]"#, "[3,1,2]"),
        gives("an element to the end by dash", "[1,2,3]", #"[{"op":"move","from":"/0","path":"/-"}]"#, "[2,3,1]"),
        gives(
            "from an object into an array", #"{"a":[1],"b":{"c":2}}"#, #"[{"op":"move","from":"/b","path":"/a/0"}]"#,
            #"{"a":[{"c":2},1]}"#),
        gives("a part becomes the whole", #"{"a":{"b":[1]}}"#, #"[{"op":"move","from":"/a/b","path":""}]"#, "[1]"),
        gives(
            "a part that was changed", #"{"a":{"b":[1]}}"#,
            #"[{"op":"add","path":"/a/b/-","value":2},{"op":"move","from":"/a","path":"/c"},{"op":"remove","path":"/c/b/0"}]"#,
            #"{"c":{"b":[2]}}"#),
        gives(
            "a name that begins with the other", #"{"a":1}"#, #"[{"op":"move","from":"/a","path":"/ab"}]"#, #"{"ab":1}"#
        ),
        fails("from nowhere", "{}", #"[{"op":"move","from":"/a","path":"/b"}]"#),
        fails("from nowhere to there", "{}", #"[{"op":"move","from":"/a","path":"/a"}]"#),
        fails("to nowhere", #"{"a":1}"#, #"[{"op":"move","from":"/a","path":"/b/c"}]"#),
        fails("into itself", #"{"a":{"b":1}}"#, #"[{"op":"move","from":"/a","path":"/a/b"}]"#),
        fails("the whole into itself", #"{"a":1}"#, #"[{"op":"move","from":"","path":"/a"}]"#),
        fails("behind the end, as it is one shorter", "[1,2]", #"[{"op":"move","from":"/0","path":"/2"}]"#),
    ]

    static let copies: [PatchCase] = [
        gives("a member", #"{"a":1}"#, #"[{"op":"copy","from":"/a","path":"/b"}]"#, #"{"a":1,"b":1}"#),
        gives("a null", #"{"a":null}"#, #"[{"op":"copy","from":"/a","path":"/b"}]"#, #"{"a":null,"b":null}"#),
        gives("over a member", #"{"a":1,"b":2}"#, #"[{"op":"copy","from":"/a","path":"/b"}]"#, #"{"a":1,"b":1}"#),
        gives("an element to its own place", "[1,2]", #"[{"op":"copy","from":"/1","path":"/0"}]"#, "[2,1,2]"),
        gives("to the end", "[1,2]", #"[{"op":"copy","from":"/0","path":"/-"}]"#, "[1,2,1]"),
        gives("the whole into itself", #"{"a":1}"#, #"[{"op":"copy","from":"","path":"/b"}]"#, #"{"a":1,"b":{"a":1}}"#),
        gives("a part becomes the whole", #"{"a":[1]}"#, #"[{"op":"copy","from":"/a","path":""}]"#, "[1]"),
        gives(
            "the two are apart afterwards", #"{"a":{"b":[1]}}"#,
            #"[{"op":"replace","path":"/a/b/0","value":2},{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/a/b/-","value":3},{"op":"add","path":"/c/b/-","value":4}]"#,
            #"{"a":{"b":[2,3]},"c":{"b":[2,4]}}"#),
        fails("from nowhere", "{}", #"[{"op":"copy","from":"/a","path":"/b"}]"#),
        fails("from the end", "[1]", #"[{"op":"copy","from":"/-","path":"/0"}]"#),
        fails("to nowhere", #"{"a":1}"#, #"[{"op":"copy","from":"/a","path":"/b/c"}]"#),
    ]
}
