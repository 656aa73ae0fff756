import Testing

@Suite("Routes of @HTTP")
struct HTTPMacroTests {
    @Test(
        "a dispatch entry has the route, with the place of each argument",
        arguments: [
            (
                "@HTTP(.post, \"/orders/:id\") distributed func add(id: Int, _ product: String, count: Int?) {}",
                ".route(\"post\", \"/orders/:id\", [.path(\"id\", .number), .body(\"product\"), .body(\"count\", optional: true)])"
            ),
            (
                "@Trebuchet.HTTP(.get, \"/a/:at/b/:y\") distributed func f(_ y: Bool, at x: UUID, page: Optional<Int>, q: String) -> Int { 1 }",
                ".route(\"get\", \"/a/:at/b/:y\", [.path(\"y\", .boolean), .path(\"at\", .text), .query(\"page\", .number, optional: true), .query(\"q\", .text)])"
            ),
            (
                "@HTTP(HTTPRouteMethod.delete, \"/\") distributed func clear(all: Swift.Bool, since: Double?) async {}",
                ".route(\"delete\", \"/\", [.query(\"all\", .boolean), .query(\"since\", .number, optional: true)])"
            ),
            (
                "@Idempotent @HTTP(.put, \"/x\") distributed func f(`in`: Item) {}",
                "idempotent: true, http: .route(\"put\", \"/x\", [.body(\"in\")])"
            ),
        ])
    func entry(member: String, source: String) {
        let expansion = Expansion("@Trebuchet distributed actor A { \(member) }")
        #expect(expansion.findings.isEmpty, "\(expansion.findings.map(\.message))")
        #expect(expansion.text.contains(source), "\(expansion.text)")
    }

    @Test(
        "an invalid route is diagnosed, and the method has none",
        arguments: [
            (
                "@HTTP(.options, \"/a\") distributed func f() {}", "@",
                "'@HTTP' requires one of .get, .post, .put, .patch, .delete, and a path as a string literal"
            ),
            ("@HTTP(.get, path) distributed func f() {}", "@", "because it is read when the code is compiled"),
            ("@HTTP(.get, \"/a/\\(b)\") distributed func f() {}", "@", "as a string literal"),
            ("@HTTP(.get, \"a\") distributed func f() {}", "\"", "'a' is not the path of a route: write a slash"),
            ("@HTTP(.get, \"/a//b\") distributed func f() {}", "\"", "'/a//b' is not the path of a route"),
            ("@HTTP(.get, \"/a/:\") distributed func f() {}", "\"", "is not the path of a route"),
            ("@HTTP(.get, \"/a b\") distributed func f() {}", "\"", "is not the path of a route"),
            (
                "@HTTP(.get, \"/a/:id\") distributed func f(order: Int, user: String) {}", "\"",
                "the path has the parameter ':id', but 'f' has no parameter of this name; it has 'order', 'user'"
            ),
            ("@HTTP(.get, \"/a/:id\") distributed func f() {}", "\"", "but 'f' has no parameter of this name"),
            (
                "@HTTP(.get, \"/:a/:a\") distributed func f(a: Int) {}", "\"",
                "the path has the parameter ':a' twice; change the name of one of them"
            ),
            (
                "@HTTP(.post, \"/\") distributed func f(a x: Int, _ a: Int) {}", "_",
                "two parameters are named 'a' in requests; change the label of one of them"
            ),
            ("@HTTP(.post, \"/\") distributed func f(_: Int) {}", "_", "requires a name for each parameter"),
            (
                "@HTTP(.post, \"/:id\") distributed func f(id: OrderID) {}", "OrderID",
                "'id' is in the path, where its type 'OrderID' is not supported; use String, UUID, Bool, an integer"
            ),
            ("@HTTP(.post, \"/:id\") distributed func f(id: Int?) {}", "Int", "its type 'Int?' is not supported"),
            (
                "@HTTP(.get, \"/\") distributed func f(ids: [Int]) {}", "[",
                "'ids' is in the query, since a request of .get has no body; its type '[Int]' is not supported there"
            ),
            ("@HTTP(.post, \"/\") distributed func f<T: Codable>(a: T) {}", "f", "cannot serve the generic method 'f'"),
        ])
    func diagnostics(member: String, token: String, message: String) throws {
        let expansion = Expansion("@Trebuchet distributed actor A {\n    \(member)\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message.contains(message), "\(finding.message)")
        #expect(finding.token == token)
        #expect(!expansion.text.contains("http: "))
    }

    @Test("the mark is only for distributed methods of actors marked @Trebuchet")
    func place() {
        let local = Expansion("@Trebuchet distributed actor A { @HTTP(.get, \"/\") func f() {} }")
        #expect(local.findings.first?.message.contains("can only be attached to a 'distributed func'") == true)
        let plain = Expansion("distributed actor A { @HTTP(.get, \"/\") distributed func f() {} }")
        #expect(plain.findings.first?.message.contains("actor marked '@Trebuchet'") == true)
    }
}
