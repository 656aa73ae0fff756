import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite struct RulesFileTests {
    private static let ada = Principal(id: "ada", roles: ["user"])
    private static let guest = Principal(id: "g", roles: ["guest"])
    private static let editor = Principal(id: "ed", roles: ["user", "editor"])
    private static let principals: [(String, Principal?)] = [
        ("nobody", nil), ("guest", guest), ("ada", ada), ("editor", editor),
    ]

    private func book(_ text: String) throws -> RulesFile { try RulesFile(json: Array(text.utf8)) }

    /// The users who may update a document of Ada's, and one of an anonymous creator.
    @Test(
        "each word of a rule admits the users that it names",
        arguments: [
            ("\"anyone\"", ["nobody", "guest", "ada", "editor"], ["nobody", "guest", "ada", "editor"]),
            ("\"nobody\"", [], []), ("\"guest\"", ["guest"], ["guest"]),
            ("\"user\"", ["ada", "editor"], ["ada", "editor"]),
            ("\"signed-in\"", ["guest", "ada", "editor"], ["guest", "ada", "editor"]),
            ("\"creator\"", ["ada"], []), ("\"no-creator\"", [], ["nobody", "guest", "ada", "editor"]),
            ("[\"creator\", \"editor\"]", ["ada", "editor"], ["editor"]),
        ])
    func roles(words: String, ofAda: [String], ofNobody: [String]) throws {
        let book = try book(#"{"roles":["editor"],"collections":{"todos":{"update":\#(words)}}}"#)
        for (creator, expected) in [("ada", ofAda), (nil, ofNobody)] {
            let document = Document(id: "a", fields: ["t": .integer(1)], creator: creator)
            var after = document
            after.set(["t": .integer(2)])
            let admitted = Self.principals.filter { _, principal in
                (try? book.validate(principal, DocumentChangeRequest(updating: document, to: after), in: "todos"))
                    != nil
            }
            #expect(admitted.map(\.0) == expected)
            #expect(Self.principals.filter { book.isAllowed($1, .update, document, in: "todos") }.map(\.0) == expected)
        }
    }

    @Test("a refused user receives the rule")
    func refusal() throws {
        let book = try book(
            #"{"roles":["editor"],"collections":{"todos":{"delete":["creator","editor"],"create":"user"}}}"#)
        let document = Document(id: "a", fields: [:], creator: "ada")
        #expect(
            throws: CollectionError.forbidden(
                .delete, id: "a", reason: "only: creator, editor (collections.todos.delete)")
        ) { try book.validate(Self.guest, DocumentChangeRequest(deleting: document), in: "todos") }
        #expect(throws: CollectionError.forbidden(.create, id: "a", reason: "only: user (collections.todos.create)")) {
            try book.validate(nil, DocumentChangeRequest(creating: document), in: "todos")
        }
    }

    @Test("each member comes from the most specific matching entry that has it; then from the server's default")
    func precedence() throws {
        let book = try book(
            #"""
            {"collections": {
              "*": {"create": "nobody", "limits": {"documents": 5}},
              "log-*": {"create": "user", "delete": "nobody"},
              "log-today": {"delete": "anyone", "limits": {"documentBytes": 9}}
            }}
            """#)
        let document = Document(id: "a", fields: [:], creator: "x")
        func may(_ action: CollectionAction, _ collection: String) -> [String] {
            Self.principals.filter { book.isAllowed($1, action, document, in: collection) }.map(\.0)
        }
        #expect(may(.create, "todos") == [] && may(.create, "log-1") == ["ada", "editor"])
        #expect(may(.create, "log-today") == ["ada", "editor"])
        #expect(may(.delete, "log-1") == [] && may(.delete, "log-today").count == 4 && may(.delete, "todos") == [])
        #expect(may(.read, "log-today").count == 4)
        let limits = book.limits(of: "log-today", CollectionLimits())
        #expect(limits.documentsPerCollection == 5 && limits.documentBytes == 9 && limits.collectionBytes == 8 << 20)
    }

    // MARK: Fields

    private static let fields = #"""
        {"roles": ["editor"], "collections": {"todos": {
          "update": "anyone", "delete": "anyone",
          "fields": {
            "title": {"type": "string", "required": true, "maxLength": 5},
            "n": {"type": "number"}, "i": {"type": "integer"}, "b": {"type": "boolean"},
            "tags": {"type": "array", "maxLength": 2}, "o": {"type": "object"},
            "state": {"enum": ["open", 1, true]},
            "owner": {"immutable": true},
            "score": {"write": "editor"}
          },
          "otherFields": false
        }}}
        """#

    private func create(_ fields: JSONObject, as principal: Principal? = nil) throws(CollectionError) {
        let book = try! book(Self.fields)
        let document = Document(id: "a", fields: fields.with("id", .string("a")), creator: principal?.id)
        try book.validate(principal, DocumentChangeRequest(creating: document), in: "todos")
    }

    private func update(
        _ fields: JSONObject, with changes: JSONObject, as principal: Principal? = nil
    ) throws(CollectionError) {
        let book = try! book(Self.fields)
        let before = Document(id: "a", fields: fields.with("id", .string("a")))
        var after = before
        after.set(changes)
        try book.validate(principal, DocumentChangeRequest(updating: before, to: after), in: "todos")
    }

    @Test(
        "a field has its type, its permitted values and its maximum length; the error names field and rule",
        arguments: [
            ("title", .string("12345"), nil), ("title", .integer(1), "must be a string (§.type)"),
            ("title", .string("123456"), "has 6 characters; the limit is 5 (§.maxLength)"),
            ("title", .string("éééé👍"), nil),
            ("n", .integer(1), nil), ("n", .number(1.5), nil), ("n", .string("1"), "must be a number (§.type)"),
            ("i", .integer(1), nil), ("i", .number(1.5), "must be an integer (§.type)"),
            ("b", .bool(false), nil), ("b", .integer(0), "must be a boolean (§.type)"),
            ("tags", .array([.null, .null]), nil), ("tags", .object([:]), "must be an array (§.type)"),
            ("tags", .array([.null, .null, .null]), "has 3 elements; the limit is 2 (§.maxLength)"),
            ("o", .object([:]), nil), ("o", .array([]), "must be an object (§.type)"),
            ("state", .string("open"), nil), ("state", .integer(1), nil), ("state", .bool(true), nil),
            ("state", .string("OPEN"), "must be one of \"open\", 1, true (§.enum)"),
        ] as [(String, JSONValue, String?)])
    func values(field: String, value: JSONValue, problem: String?) {
        let error = problem.map {
            CollectionError.invalidDocument(
                "field '\(field)' " + $0.replacing("§", with: "collections.todos.fields.\(field)"))
        }
        let base: JSONObject = ["title": .string("t")]
        #expect(error == result { try create(base.with(field, value)) })
        #expect(error == result { try update(base, with: [field: value]) })
    }

    private func result(_ body: () throws -> Void) -> CollectionError? {
        do {
            try body()
            return nil
        } catch {
            return error as? CollectionError
        }
    }

    @Test("a required field is present in new documents and stays")
    func required() {
        let missing = CollectionError.invalidDocument(
            "field 'title' is required (collections.todos.fields.title.required)")
        #expect(result { try create([:]) } == missing)
        #expect(result { try update(["title": .string("t")], with: ["title": .null]) } == missing)
        #expect(
            result { try update(["b": .bool(true)], with: ["b": .bool(false)]) } == nil,
            "the document is older than the rules")
    }

    @Test("an immutable field is set once and then neither changed nor removed, but may be sent unchanged")
    func immutable() {
        let forbidden = CollectionError.forbidden(
            .update, id: "a", reason: "field 'owner' is immutable (collections.todos.fields.owner.immutable)")
        let document: JSONObject = ["title": .string("t"), "owner": .string("ada")]
        #expect(result { try create(document) } == nil)
        #expect(result { try update(document, with: ["owner": .string("eve")], as: Self.editor) } == forbidden)
        #expect(result { try update(document, with: ["owner": .null]) } == forbidden)
        #expect(result { try update(document, with: ["owner": .string("ada"), "b": .bool(true)]) } == nil)
        #expect(result { try update(["title": .string("t")], with: ["owner": .string("ada")]) } == nil)
    }

    @Test("a field with writers is set, changed and removed only by them")
    func writers() {
        func reason(_ action: CollectionAction) -> CollectionError {
            .forbidden(
                action, id: "a",
                reason: "field 'score' may be written only by: editor (collections.todos.fields.score.write)")
        }
        let document: JSONObject = ["title": .string("t"), "score": .integer(1)]
        #expect(result { try create(document, as: Self.ada) } == reason(.create))
        #expect(result { try create(document, as: Self.editor) } == nil)
        #expect(result { try update(document, with: ["score": .integer(2)], as: Self.ada) } == reason(.update))
        #expect(result { try update(document, with: ["score": .null], as: Self.ada) } == reason(.update))
        #expect(result { try update(document, with: ["score": .integer(2)], as: Self.editor) } == nil)
        #expect(result { try update(document, with: ["title": .string("u")], as: Self.ada) } == nil)
    }

    @Test("writing other fields is refused; existing ones stay")
    func otherFields() {
        let refused = CollectionError.invalidDocument(
            "field 'extra' is not allowed (collections.todos.otherFields)")
        #expect(
            result { try create(["title": .string("t"), "z": .null, "extra": .null]) } == nil, "a null is not a field")
        #expect(result { try create(["title": .string("t"), "zoo": .bool(true), "extra": .bool(true)]) } == refused)
        let old: JSONObject = ["title": .string("t"), "extra": .bool(true)]
        #expect(result { try update(old, with: ["title": .string("u")]) } == nil)
        #expect(result { try update(old, with: ["extra": .bool(false)]) } == refused)
        #expect(result { try update(old, with: ["extra": .null]) } == nil)
    }

    // MARK: Readers, limits, rooms

    @Test(
        "readers with the same rights share their queries",
        arguments: [
            ("\"anyone\"", [.allCallers, .allCallers, .allCallers, .allCallers]),
            ("\"signed-in\"", [.named("nobody"), .named("all"), .named("all"), .named("all")]),
            ("\"creator\"", [.named("not signed in"), .separate, .separate, .separate]),
            ("[\"creator\", \"editor\"]", [.named("not signed in"), .separate, .separate, .named("all")]),
            ("[\"no-creator\", \"user\"]", [.named("not signed in"), .separate, .named("all"), .named("all")]),
        ] as [(String, [ReaderGroup])])
    func readers(words: String, groups: [ReaderGroup]) throws {
        let book = try book(#"{"roles":["editor"],"collections":{"todos":{"read":\#(words)}}}"#)
        #expect(Self.principals.map { book.readerGroup(for: $0.1, in: "todos") } == groups)
    }

    @Test("limits of a collection replace those of the server")
    func limits() throws {
        let book = try book(
            #"""
            {"collections": {
              "a": {"limits": {"documents": 1, "bytes": 2, "documentBytes": 3, "writesPerSecond": 0.5, "writesAtOnce": 4}},
              "b": {"limits": {"writesPerSecond": 20}}
            }}
            """#)
        let (a, b) = (book.limits(of: "a", CollectionLimits()), book.limits(of: "b", CollectionLimits()))
        #expect(a.documentsPerCollection == 1 && a.collectionBytes == 2 && a.documentBytes == 3)
        #expect(a.writesPerConnectionAndCollection == RateLimit(callsPerSecond: 0.5, burst: 4))
        #expect(b.writesPerConnectionAndCollection == RateLimit(callsPerSecond: 20, burst: 100))
        #expect(b.documentsPerCollection == 10_000)
    }

    @Test("rooms use the entry of the longest matching type, and members that it lacks come from *")
    func rooms() throws {
        let book = try book(
            #"""
            {"roles": ["editor"], "rooms": {
              "*": {"join": "signed-in", "members": 9},
              "chat": {"join": "anyone", "list": "user", "publish": "user"},
              "chat-secret": {"join": "editor", "list": "nobody", "members": 2}
            }}
            """#)
        func may(_ body: (Principal?) -> Bool) -> [String] { Self.principals.filter { body($1) }.map(\.0) }
        #expect(may { book.canJoin($0, "chat-lobby") }.count == 4)
        #expect(may { book.canJoin($0, "chat-secret-1") } == ["editor"])
        #expect(may { book.canJoin($0, "game-1") } == ["guest", "ada", "editor"])
        #expect(may { book.canJoin($0, "lobby") } == ["guest", "ada", "editor"], "the room has no type")
        #expect(may { book.canList($0, "chat-") } == ["ada", "editor"] && may { book.canList($0, "game-") } == [])
        #expect(may { book.canList($0, "chat-secret-1") } == [])
        #expect(may { book.canPublish($0, "t", in: "chat-lobby") } == ["ada", "editor"])
        #expect(may { book.canPublish($0, "t", in: "game-1") }.count == 4)
        #expect(["chat-lobby", "chat-secret-1", "game-1"].map { book.memberLimit(of: $0, 100) } == [9, 2, 9])
    }
}
