import Foundation
import TestSupport
import Testing
import Transports

@testable import Trebuchet
@testable import TrebuchetWire
@testable import WebSockets

/// Parts of calls and routes over HTTP, without a socket.
@Suite struct HTTPUnitTests {
    private static func tree(_ routes: [(String, String)]) throws -> RouteTree {
        var tree = RouteTree()
        for (method, path) in routes {
            let route = HTTPRoute(
                method: method, path: path, components: try HTTPRoute.components(of: path), isAuthenticated: false,
                bodyBytes: nil, timeout: nil, action: .program { _ in .status(204) })
            let isNew = tree.insert(route)
            #expect(isNew)
        }
        return tree
    }

    @Test(
        "a literal takes precedence over a parameter, from the first component on",
        arguments: [
            ("/", "/", []), ("/a", "/a", []), ("/b", "/:x", ["b"]), ("/a/b", "/a/b", []), ("/a/c", "/a/:y", ["c"]),
            ("/a/b/c", "/a/b/:z", ["c"]), ("/a/d/c", "/a/:y/c", ["d"]), ("/b/b/c", "/:x/:y/:z", ["b", "b", "c"]),
            ("/a/d/e", "/:x/:y/:z", ["a", "d", "e"]), ("/a%2Fb", "/:x", ["a/b"]), ("/%61", "/a", []), ("/a/", nil, []),
            ("//", nil, []), ("/a//c", nil, []), ("/a/b/c/d", nil, []), ("/b/b", nil, []),
        ] as [(String, String?, [String])])
    func matches(path: String, pattern: String?, values: [String]) throws {
        let tree = try Self.tree(
            ["/", "/a", "/:x", "/a/b", "/a/:y", "/a/b/:z", "/a/:y/c", "/:x/:y/:z"].map { ("GET", $0) })
        let match = try tree.match(#require(RouteTree.components(of: path)))
        #expect(match?.route(of: "GET")?.path == pattern)
        #expect(match?.values ?? [] == values)
    }

    @Test(
        "a path that is not UTF-8, or malformed, has no components",
        arguments: [("/%ff", nil), ("/%", nil), ("a", nil), ("*", nil), ("/%C3%A9/b", ["é", "b"]), ("/..", [".."])]
            as [(String, [String]?)])
    func components(path: String, wanted: [String]?) { #expect(RouteTree.components(of: path) == wanted) }

    @Test("a path has the methods of its routes, and HEAD with GET")
    func methods() throws {
        let tree = try Self.tree([("GET", "/a"), ("POST", "/a"), ("PUT", "/b")])
        let (a, b) = (try #require(tree.match(["a"])), try #require(tree.match(["b"])))
        #expect(a.allowedMethods == "GET, HEAD, POST" && b.allowedMethods == "PUT")
        #expect(a.route(of: "HEAD")?.method == "GET" && b.route(of: "HEAD") == nil && a.route(of: "get") == nil)
    }

    @Test(
        "a query is split and decoded; malformed items are omitted",
        arguments: [
            (nil, []), ("", []), ("a=1&b=2", [("a", "1"), ("b", "2")]), ("a", [("a", "")]), ("a=b=c", [("a", "b=c")]),
            ("a+b=%2B+", [("a b", "+ ")]), ("=1", [("", "1")]), ("&&a=1&", [("a", "1")]),
            ("a=%zz&b=%ff&c=1", [("c", "1")]),
        ] as [(String?, [(String, String)])])
    func queries(query: String?, items: [(String, String)]) {
        #expect(RouteRequest.items(of: query) == items.map { RouteRequest.QueryItem(name: $0, value: $1) })
    }

    @Test("sessions of keys differ by principal and key, and have the form of sessions")
    func sessions() {
        let sessions = [("a", "b"), ("ab", ""), ("", "ab"), ("1:a", "b"), ("a", "b ")].map {
            IdempotencyKey.session($1, of: $0)
        }
        #expect(Set(sessions).count == sessions.count)
        for session in sessions {
            #expect(session.hasPrefix("0.") && session.utf8.count <= CallSessionRegistry.longest)
            #expect(QualifiedCallSessionID(session)?.instance == IdempotencyKey.instance)
        }
        #expect(IdempotencyKey.session("b", of: "a") == sessions[0])
        // The same in every process and version: stores and other nodes have them.
        #expect(IdempotencyKey.session("key", of: "ada") == "0.2bkty9il9lr2w.2xktm2dxcigpq")
    }

    @Test("the guide has the status of each code")
    func statuses() throws {
        let page = try String(contentsOf: packageRoot.appending(path: "Docs/Guides/HTTP.md"), encoding: .utf8)
        var rows: [String: String] = [:]
        for line in page.split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) }
            rows[cells[0]] = cells.count > 1 ? cells[1] : nil
        }
        for (code, kind) in HTTPProblem.kinds {
            let status = code == .application ? "422, 500" : "\(kind.status)"
            #expect(rows[code.rawValue] == status, "\(code.rawValue)")
        }
        #expect(HTTPProblem.kinds.count == 14)
    }

    @Test("the reason of a refusal is the detail of its problem document")
    func reasons() {
        let problem = HTTPProblem(.invalidArguments, "two\nlines").response
        #expect(RejectionLog.reason(problem) == "two\nlines")
        #expect(RejectionLog.reason(HTTPResponse(status: 404, text: "nothing")) == "nothing")
    }
}
