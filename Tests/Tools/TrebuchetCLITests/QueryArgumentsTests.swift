import Commands
import Testing
import TrebuchetServices

@testable import TrebuchetCLI

@Suite struct QueryArgumentsTests {
    @Test("conditions are formatted as they are parsed")
    func conditions() throws {
        let table: [(String, QueryCondition)] = [
            ("done=false", .field("done", equals: .bool(false))),
            (#"from="Ada""#, .field("from", equals: .string("Ada"))),
            (#"a="x<=y""#, .field("a", equals: .string("x<=y"))), ("n!=1", .field("n", doesNotEqual: .integer(1))),
            ("n<1", .field("n", isLessThan: .integer(1))), ("n<=1", .field("n", isAtMost: .integer(1))),
            ("n>1", .field("n", isGreaterThan: .integer(1))), ("n>=1.5", .field("n", isAtLeast: .number(1.5))),
            ("title^=Mi", .field("title", hasPrefix: "Mi")), (#"title^="Mi""#, .field("title", hasPrefix: "Mi")),
            ("t^=a=b", .field("t", hasPrefix: "a=b")),
            ("n in 1,2", .field("n", isIn: [.integer(1), .integer(2)])), ("n in [1]", .field("n", isIn: [.integer(1)])),
            (#"tags has "x""#, .field("tags", contains: .string("x"))),
            ("address.city=null", .field("address.city", equals: .null)),
            ("$creator=null", .field("$creator", equals: .null)),
            (#"title = "Milk""#, .field("title", equals: .string("Milk"))),
            ("n  >=  1", .field("n", isAtLeast: .integer(1))),
            (" n != 1 ", .field("n", doesNotEqual: .integer(1))), ("title ^= Mi", .field("title", hasPrefix: "Mi")),
            ("t^==x", .field("t", hasPrefix: "=x")), ("n  in  1, 2", .field("n", isIn: [.integer(1), .integer(2)])),
            ("n>-1", .field("n", isGreaterThan: .integer(-1))),
        ]
        for (text, condition) in table { #expect(try QueryArguments.condition(text) == condition, "\(text)") }
        for text in ["done", "=1", "", "n=", "n in x", "n=x"] {
            #expect(throws: UsageError.self, "\(text)") { try QueryArguments.condition(text) }
        }
    }

    @Test("a mistake is reported, with the intended text if it is known")
    func mistakes() throws {
        let all = "operators are = != < <= > >= ^= in has"
        for (text, message) in [
            (#"title~="Mi""#, "--where title~=\"Mi\": '~=' is not an operator; \(all)"),
            ("title like x", "--where title like x: the operator is missing; \(all)"),
            (#"title == "Milk""#, #"--where title == "Milk": '==' is not an operator; write --where 'title="Milk"'"#),
            ("n=<1", "'=<' is not an operator; write --where 'n<=1'"), ("n<>1", "write --where 'n!=1'"),
            ("list in todo,doing", #"a string needs quotes: --where 'list in "todo","doing"'"#),
            ("list in 1, x", #"--where 'list in 1,"x"'"#),
            ("title=Milk", #"a string needs quotes: --where 'title="Milk"'"#),
            ("title = 'Milk'", #"--where 'title="Milk"'"#), ("tags has x", #"--where 'tags has "x"'"#),
            (#"a="x" and b=1"#, "is not JSON; repeat the option for several conditions"),
            ("n=", "expected a JSON value, such as done=false"), ("=1", "expected a field and its value"),
        ] {
            let error = try #require(throws: UsageError.self, "\(text)") { try QueryArguments.condition(text) }
            #expect(error.description.contains(message), "\(error)")
        }
        let other = try #require(throws: UsageError.self) { try QueryArguments.equation("a>1", of: "--if") }
        #expect(other.description == "--if a>1: expected FIELD=JSON, such as done=false")
        #expect(try QueryArguments.equation(#"state = "open""#, of: "--if").field == "state")
    }

    @Test("a sort order has several fields, and paths")
    func order() throws {
        #expect(try QueryArguments.order("-priority,title") == [.descending("priority"), .ascending("title")])
        #expect(try QueryArguments.order("a.b, -c") == [.ascending("a.b"), .descending("c")])
        for (text, right) in [
            ("a desc", "'-a'"), ("a asc", "'a'"), ("a,", "'-priority,title'"), ("-", "'-priority,title'"),
        ] {
            let error = try #require(throws: UsageError.self) { try QueryArguments.order(text) }
            #expect(error.description.contains("as --order \(right)"), "\(error)")
        }
    }

    @Test("a query is built from all of its options")
    func query() throws {
        let spec = CommandSpec(name: "x", summary: "", options: QueryArguments.options) { _ in }
        let arguments = try ParsedArguments(
            ["--where", "a=1", "--where=b>2", "--order", "-c", "--limit", "3", "--after", "xyz"], for: spec)
        #expect(
            try QueryArguments.query(arguments)
                == CollectionQuery(
                    where: [.field("a", equals: .integer(1)), .field("b", isGreaterThan: .integer(2))],
                    order: [.descending("c")], limit: 3,
                    after: "xyz"))
        #expect(try QueryArguments.query(ParsedArguments([], for: spec)) == .all)
    }
}
