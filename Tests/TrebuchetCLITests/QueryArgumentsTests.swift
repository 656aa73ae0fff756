import Testing
import TrebuchetServices

@testable import TrebuchetCLI

@Suite struct QueryArgumentsTests {
    @Test("conditions are written as they are read")
    func conditions() throws {
        let table: [(String, QueryCondition)] = [
            ("done=false", .equal("done", .bool(false))), (#"from="Ada""#, .equal("from", .string("Ada"))),
            (#"a="x<=y""#, .equal("a", .string("x<=y"))), ("n!=1", .notEqual("n", .integer(1))),
            ("n<1", .less("n", .integer(1))), ("n<=1", .lessOrEqual("n", .integer(1))),
            ("n>1", .greater("n", .integer(1))), ("n>=1.5", .greaterOrEqual("n", .number(1.5))),
            ("title^=Mi", .prefix("title", "Mi")), (#"title^="Mi""#, .prefix("title", "Mi")),
            ("t^=a=b", .prefix("t", "a=b")),
            ("n in 1,2", .isIn("n", [.integer(1), .integer(2)])), ("n in [1]", .isIn("n", [.integer(1)])),
            (#"tags has "x""#, .contains("tags", .string("x"))),
            ("address.city=null", .equal("address.city", .null)), ("$creator=null", .equal("$creator", .null)),
        ]
        for (text, condition) in table { #expect(try QueryArguments.condition(text) == condition, "\(text)") }
        for text in ["done", "=1", "", "n=", "n in x", "n=x"] {
            #expect(throws: UsageError.self, "\(text)") { try QueryArguments.condition(text) }
        }
    }

    @Test("a query is made of all of its options")
    func query() throws {
        let spec = CommandSpec(name: "x", summary: "", options: QueryArguments.options) { _ in }
        let arguments = try ParsedArguments(
            ["--where", "a=1", "--where=b>2", "--order", "-c", "--limit", "3", "--after", "xyz"], for: spec)
        #expect(
            try QueryArguments.query(arguments)
                == CollectionQuery(
                    where: [.equal("a", .integer(1)), .greater("b", .integer(2))], order: [.descending("c")], limit: 3,
                    after: "xyz"))
        #expect(try QueryArguments.query(ParsedArguments([], for: spec)) == .all)
    }
}
