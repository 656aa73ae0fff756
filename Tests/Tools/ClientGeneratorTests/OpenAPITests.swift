import ClientGenerator
import Foundation
import TestSupport
import Testing

/// OpenAPI documents: their content, and their structure by the rules of OpenAPI 3.1.
@Suite struct OpenAPITests {
    private static let source = """
        import Trebuchet
        /// Todos.
        @Trebuchet distributed actor TodoList {
            enum Failure: Error, Codable { case full(at: Date) }
            struct Item: Codable, Sendable { var id: UUID; var note: String?; var size: Size; var next: [Item] }
            enum Size: String, Codable { case small, large }
            enum Shape: Codable { case circle(radius: Double), point }
            struct Page<Value: Codable>: Codable { var values: [Value]; var total: UInt8 }
            struct Name: RawRepresentable, Codable { var rawValue: String }
            /// The items.
            @StreamedState var items: [Item] = []
            @StreamedEvents var moves: Shape
            /// Adds an item.
            @Idempotent distributed func add(_ item: Item, at position: Int?) throws(Failure) -> Item { item }
            distributed func clear() {}
            distributed func page(_ name: Name) -> Page<Item> { fatalError() }
            distributed func pages() -> [String: Page<Int>] { [:] }
            distributed func `über`(_ 🐱: Data) -> ClosedRange<Date>? { nil }
            // trebuchet: skip
            distributed func hidden() {}
        }
        """

    private static func document(_ source: String, _ names: [String: String] = [:]) throws -> [String: Any] {
        var options = Generation.Options()
        options.actorNames = names
        let generation = Generation([(path: "App.swift", text: source)], options: options)
        #expect(!generation.hasErrors, "\(generation.problems)")
        let json = try JSONSerialization.jsonObject(with: Data(try generation.openAPI().utf8))
        return try #require(json as? [String: Any])
    }

    /// Returns the value at a path of members.
    private static func value(_ json: Any?, _ path: String...) -> Any? {
        path.reduce(json) { ($0 as? [String: Any])?[$1] }
    }

    @Test("a document has the calls and streams of each actor, with their types")
    func content() throws {
        let document = try Self.document(Self.source, ["TodoList": "todos"])
        try Self.validate(document)
        let paths = try #require(document["paths"] as? [String: Any])
        #expect(
            paths.keys.sorted() == [
                "/call/todos/%C3%BCber(_:)", "/call/todos/add(_:at:)", "/call/todos/clear()", "/call/todos/page(_:)",
                "/call/todos/pages()", "/observe/todos/items", "/observe/todos/moves",
            ])
        let add = Self.value(paths, "/call/todos/add(_:at:)", "post")
        #expect(Self.value(add, "operationId") as? String == "TodoList.add")
        #expect(Self.value(add, "description") as? String == "Adds an item.")
        let body = Self.value(add, "requestBody", "content", "application/json", "schema")
        #expect(Self.value(body, "maxItems") as? Int == 2)
        let first = (Self.value(body, "prefixItems") as? [[String: Any]])?.first
        #expect(
            first?["$ref"] as? String == "#/components/schemas/TodoListItem" && first?["title"] as? String == "item")
        #expect(Self.value(add, "responses", "422") != nil && Self.value(add, "responses", "204") == nil)
        #expect(Self.value(paths, "/call/todos/clear()", "post", "responses", "204") != nil)
        let stream = Self.value(
            paths, "/observe/todos/items", "get", "responses", "200", "content", "text/event-stream")
        #expect(Self.value(stream, "x-event-data", "items", "$ref") as? String == "#/components/schemas/TodoListItem")
        let schemas = Self.value(document, "components", "schemas")
        #expect(
            (schemas as? [String: Any])?.keys.sorted() == [
                "Problem", "TodoListFailure", "TodoListItem", "TodoListName", "TodoListPage_Int",
                "TodoListPage_TodoListItem", "TodoListShape", "TodoListSize",
            ])
        #expect(Self.value(schemas, "TodoListItem", "required") as? [String] == ["id", "size", "next"])
        #expect(Self.value(schemas, "TodoListItem", "properties", "id", "format") as? String == "uuid")
        #expect(Self.value(schemas, "TodoListSize", "enum") as? [String] == ["small", "large"])
        #expect((Self.value(schemas, "TodoListShape", "oneOf") as? [Any])?.count == 2)
        #expect(Self.value(schemas, "TodoListName", "type") as? String == "string")
        let page = Self.value(schemas, "TodoListPage_Int", "properties")
        #expect(Self.value(page, "values", "items", "type") as? String == "integer")
        #expect(Self.value(page, "total", "minimum") as? Int == 0)
    }

    @Test("without a name the actor is a parameter; a name may have parameters")
    func names() throws {
        let any = try Self.document(Self.source)
        try Self.validate(any)
        #expect(Self.value(any, "paths", "/call/{actor}/clear()", "post") != nil)
        let pattern = try Self.document(Self.source, ["TodoList": "lists/{user}/{list}"])
        try Self.validate(pattern)
        #expect(Self.value(pattern, "paths", "/observe/lists/{user}/{list}/items", "get") != nil)
    }

    @Test("a method marked @HTTP has its route, with the parameters where requests have them")
    func routes() throws {
        let document = try Self.document(
            """
            import Trebuchet
            @Trebuchet distributed actor Desk {
                struct Order: Codable, Sendable { var id: Int }
                @HTTP(.get, "/orders/:id") distributed func order(id: Int, deep: Bool?) -> Order { fatalError() }
                @Idempotent @HTTP(.put, "/orders/:id") distributed func put(_ order: Order, id: Int, note: String?) {}
                @HTTP(.delete, "/orders/:id/items") distributed func clear(id: Int) {}
            }
            """, ["Desk": "desk"])
        try Self.validate(document)
        let get = Self.value(document, "paths", "/orders/{id}", "get")
        let parameters = Self.value(get, "parameters") as? [[String: Any]] ?? []
        #expect(parameters.compactMap { $0["in"] as? String } == ["path", "query"])
        #expect(parameters.first?["required"] as? Bool == true && parameters[1]["required"] == nil)
        #expect(Self.value(get, "operationId") as? String == "Desk.order.http")
        #expect(Self.value(get, "requestBody") == nil)
        let put = Self.value(document, "paths", "/orders/{id}", "put")
        let body = Self.value(put, "requestBody", "content", "application/json", "schema")
        #expect(Self.value(body, "required") as? [String] == ["order"])
        #expect((Self.value(body, "properties") as? [String: Any])?.keys.sorted() == ["note", "order"])
        #expect(Self.value(document, "paths", "/orders/{id}/items", "delete", "responses", "204") != nil)
        #expect(Self.value(document, "paths", "/call/desk/order(id:deep:)", "post") != nil)
    }

    @Test("paths of two types, and unknown types, are errors")
    func collisions() throws {
        let two = """
            import Trebuchet
            @Trebuchet distributed actor A { distributed func reset() {} }
            @Trebuchet distributed actor B { distributed func reset() {} }
            """
        let thrown = #expect(throws: GeneratorDiagnostic.self) { _ = try Self.document(two) }
        #expect(thrown?.message.contains("'A' and 'B'") == true && thrown?.message.contains("--actor A=NAME") == true)
        try Self.validate(try Self.document(two, ["A": "a"]))
        // Both match the same paths.
        #expect(throws: GeneratorDiagnostic.self) { _ = try Self.document(two, ["A": "{a}"]) }
        let unknown = #expect(throws: GeneratorDiagnostic.self) { _ = try Self.document(two, ["A": "a", "C": "c"]) }
        #expect(unknown?.message.contains("'--actor C'") == true)
    }

    @Test("the tool writes the document of the example actors")
    func tool() throws {
        let run = try Run(
            ServeProcess.built("trebuchet-generate"),
            ["openapi", "Sources/Tools/TrebuchetCLI/Demo", "--title", "Examples"]
                + ["TodoList=todos", "Counter=counter", "PersistedCounter=persisted", "GameServer=game"].flatMap {
                    ["--actor", $0]
                },
            in: Checkout.root)
        #expect(run.status == 0)
        let json = try JSONSerialization.jsonObject(with: Data(run.output.utf8))
        let document = try #require(json as? [String: Any])
        try Self.validate(document)
        #expect(Self.value(document, "info", "title") as? String == "Examples")
        #expect(Self.value(document, "paths", "/call/todos/addTodo(title:)", "post") != nil)
    }

    // MARK: The structure

    /// Checks the rules of OpenAPI 3.1 and of JSON Schema 2020-12 that a document can break.
    private static func validate(_ document: [String: Any]) throws {
        #expect(document["openapi"] as? String == "3.1.0")
        #expect(value(document, "info", "title") is String && value(document, "info", "version") is String)
        var operations: Set<String> = []
        for (path, item) in try #require(document["paths"] as? [String: Any]) {
            #expect(path.hasPrefix("/") && path.utf8.allSatisfy { (0x21...0x7E).contains($0) })
            let names = path.matches(of: /\{([^}]+)\}/).map { String($0.output.1) }
            for (method, operation) in try #require(item as? [String: Any]) {
                #expect(["get", "post", "put", "patch", "delete"].contains(method))
                let id = try #require(value(operation, "operationId") as? String)
                #expect(operations.insert(id).inserted, "\(id)")
                let parameters = (value(operation, "parameters") as? [[String: Any]] ?? []).map {
                    resolved($0, document)
                }
                let inPath = parameters.filter { $0["in"] as? String == "path" }
                #expect(Set(inPath.compactMap { $0["name"] as? String }) == Set(names), "\(path)")
                #expect(inPath.allSatisfy { $0["required"] as? Bool == true })
                for parameter in parameters { check(parameter["schema"], document) }
                let responses = try #require(value(operation, "responses") as? [String: Any])
                #expect(!responses.isEmpty)
                for (status, response) in responses {
                    #expect(status == "default" || (100...599).contains(Int(status) ?? 0))
                    let response = resolved(try #require(response as? [String: Any]), document)
                    #expect(response["description"] is String)
                    checkContent(response["content"], document)
                }
                checkContent(value(operation, "requestBody", "content"), document)
            }
        }
        let components = try #require(document["components"] as? [String: Any])
        for kind in components.values {
            for name in try #require(kind as? [String: Any]).keys {
                #expect(name.wholeMatch(of: /[A-Za-z0-9._-]+/) != nil, "\(name)")
            }
        }
        for schema in (components["schemas"] as? [String: Any] ?? [:]).values { check(schema, document) }
    }

    private static func checkContent(_ content: Any?, _ document: [String: Any]) {
        for media in (content as? [String: Any] ?? [:]).values {
            check(value(media, "schema"), document)
            if let data = value(media, "x-event-data") { check(data, document) }
        }
    }

    private static func resolved(_ object: [String: Any], _ document: [String: Any]) -> [String: Any] {
        guard let reference = object["$ref"] as? String else { return object }
        let path = reference.split(separator: "/").dropFirst()
        let found = path.reduce(document as Any?) { ($0 as? [String: Any])?[String($1)] } as? [String: Any]
        #expect(reference.hasPrefix("#/") && found != nil, "\(reference)")
        return found ?? [:]
    }

    /// Checks a schema and all schemas in it.
    private static func check(_ schema: Any?, _ document: [String: Any]) {
        guard let schema = schema as? [String: Any] else {
            Issue.record("not a schema: \(schema ?? "nothing")")
            return
        }
        _ = resolved(schema, document)
        if let type = schema["type"] {
            let types = ["null", "boolean", "object", "array", "number", "integer", "string"]
            #expect((type as? String).map { types.contains($0) } == true)
        }
        let properties = schema["properties"] as? [String: Any] ?? [:]
        if let required = schema["required"] {
            #expect((required as? [String]).map { Set($0).isSubset(of: properties.keys) } == true)
        }
        for nested in properties.values { check(nested, document) }
        for key in ["items", "additionalProperties"] where schema[key] is [String: Any] { check(schema[key], document) }
        for key in ["prefixItems", "anyOf", "oneOf", "allOf", "enum"] {
            guard let listed = schema[key] else { continue }
            let elements = listed as? [Any] ?? []
            #expect(!elements.isEmpty, "\(key) must not be empty")
            if key != "enum" { for nested in elements { check(nested, document) } }
        }
    }
}
