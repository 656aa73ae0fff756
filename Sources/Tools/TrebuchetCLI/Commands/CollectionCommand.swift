import Commands
import SharedState
import Trebuchet
import TrebuchetServices

/// `trebuchet collection`: reads and writes the documents of a collection.
enum CollectionCommand {
    static let spec = CommandSpec(
        name: "collection",
        summary: "list, observe and change documents",
        subcommands: [list, get, watch, create, update, increment, link, unlink, expire, delete],
        discussion: "The server must host collections, as 'trebuchet serve' does.",
        run: { _ in })

    private static let list = CommandSpec(
        name: "collection list",
        summary: "print the documents of a collection as JSON lines",
        operands: "<collection>",
        operandCount: 1...1,
        options: RemoteURL.options + QueryArguments.options
            + [OptionSpec("--count", nil, "print only the number of matches")],
        discussion: QueryArguments.discussion(for: "list"),
        run: { arguments in
            let query = try QueryArguments.query(arguments)
            guard !arguments.has("--count") else { return try await printCount(arguments, query) }
            try await withCollection(arguments, query) { documents, _ in
                for await value in documents.updates where !value.isLoading {
                    if let error = value.error { throw error }
                    CommandTimeout.current?.stop()
                    if query.limit == nil, value.hasMore {
                        Console.error(
                            "trebuchet collection list: the result is truncated; to print all documents, use "
                                + "'collection get' repeatedly with the --after that it prints, until it prints none"
                        )
                    }
                    for document in value.items { Console.print(LogLine.ofJSON(JSONArgument.text(document.value))) }
                    return
                }
            }
        })

    private static let get = CommandSpec(
        name: "collection get",
        summary: "print one page of the documents of a collection as JSON lines, and the cursor of the next",
        operands: "<collection>",
        operandCount: 1...1,
        options: RemoteURL.options + QueryArguments.options
            + [OptionSpec("--count", nil, "print only the number of matches")],
        discussion: """
            If there are more, the last line is '--after CURSOR' on standard error: the option that prints the next page.
            \(QueryArguments.discussion(for: "get"))
            """,
        run: { arguments in
            let query = try QueryArguments.query(arguments)
            guard !arguments.has("--count") else { return try await printCount(arguments, query) }
            let page = try await getPage(arguments, query)
            for document in page.items { Console.print(LogLine.ofJSON(JSONArgument.text(document.value))) }
            if let cursor = page.cursor { Console.error("--after \(cursor)") }
        })

    private static func getPage(
        _ arguments: ParsedArguments, _ query: CollectionQuery
    ) async throws -> CollectionPage<AnyDocument> {
        let backend = TrebuchetBackend(client: try await RemoteURL.connect(arguments))
        let page = try await backend.get(CollectionKey<AnyDocument>(arguments.operands[0]), query)
        CommandTimeout.current?.stop()
        await backend.client.close()
        return page
    }

    private static func printCount(_ arguments: ParsedArguments, _ query: CollectionQuery) async throws {
        let counting = CollectionQuery(where: query.conditions, limit: 0, includesCount: true)
        Console.print("\(try await getPage(arguments, counting).count ?? 0)")
    }

    private static let watch = CommandSpec(
        name: "collection watch",
        summary: "print the documents of a collection as a JSON array at each change",
        operands: "<collection>",
        operandCount: 1...1,
        options: RemoteURL.options + QueryArguments.options + [OptionSpec("--count", "N", "exit after N lines")],
        discussion: """
            Reconnects after a lost connection; reports losses and reconnections on standard error:
              trebuchet collection watch todos --where done=false
            """,
        run: { arguments in
            let count = try arguments.int("--count", in: 1...Int.max)
            let query = try QueryArguments.query(arguments)
            try await UntilSignal.run { end in
                try await withCollection(arguments, query) { documents, client in
                    let reporting = ConnectionReporter.follow(client, of: "collection watch")
                    defer { reporting.cancel() }
                    try await printChanges(of: documents, count: count, until: end)
                }
            }
        })

    private static let create = CommandSpec(
        name: "collection create",
        summary: "create a document",
        operands: "<collection> <document>",
        operandCount: 2...2,
        options: RemoteURL.options + [OptionSpec("--expires-in", "SECONDS", "delete the document after this time")],
        discussion: #"""
            The document is a JSON object. Without a member 'id' it gets a generated one, which is printed:
              trebuchet collection create todos '{"id":"1","title":"Milk"}'
            """#,
        run: { arguments in
            var fields = try AnyDocument.fields(JSONArgument.value(arguments.operands[1]))
            let madeUp = fields["id"] == nil ? AnyDocument.newID() : nil
            if let madeUp { fields["id"] = .string(madeUp) }
            let document = try AnyDocument(.object(fields))
            let lifetime = try arguments.double("--expires-in", in: 0.001...3e9).map { Duration.seconds($0) }
            try await withCollection(arguments, .one) { documents, _ in
                try await documents.create(document, expiresIn: lifetime)
            }
            if let madeUp { Console.print(madeUp) }
        })

    private static let expire = CommandSpec(
        name: "collection expire",
        summary: "set or remove the lifetime of a document",
        operands: "<collection> <id> <seconds>",
        operandCount: 3...3,
        options: RemoteURL.options,
        discussion: """
            The lifetime starts now and replaces the previous one; 'never' removes it:
              trebuchet collection expire todos 1 3600
            """,
        run: { arguments in
            let text = arguments.operands[2]
            var lifetime: Duration?
            if text != "never" {
                guard let seconds = Double(text), (0.001...3e9).contains(seconds) else {
                    throw UsageError("'\(text)' is not a lifetime: pass seconds of at least 0.001, or 'never'")
                }
                lifetime = .seconds(seconds)
            }
            try await withCollection(arguments, .one) { [lifetime] documents, _ in
                try await documents.expire(arguments.operands[1], in: lifetime)
            }
        })

    private static let update = CommandSpec(
        name: "collection update",
        summary: "change fields of a document",
        operands: "<collection> <id> <fields>",
        operandCount: 3...3,
        options: RemoteURL.options + [
            condition, OptionSpec("--merge", nil, "change parts of fields: a merge patch (RFC 7396)"),
        ],
        discussion: #"""
            The fields are a JSON object; null removes a field, and absent fields are unchanged:
              trebuchet collection update todos 1 '{"done":true}' --if owner='"ada"'
            """#,
        run: { arguments in
            let fields = try AnyDocument.fields(JSONArgument.value(arguments.operands[2]))
            let id = arguments.operands[1]
            let condition = try writeCondition(arguments)
            if arguments.has("--merge") {
                return try await withCollection(arguments, .one) { documents, _ in
                    try await documents.merge(id, fields, if: condition)
                }
            }
            try await withCollection(arguments, .document(id)) { documents, _ in
                for await value in documents.updates where !value.isLoading {
                    if let error = value.readError { throw error }
                    // The query selects this document only.
                    guard value.items[id: id] != nil else { throw CollectionError.notFound(id: id) }
                    break
                }
                try await documents.update(id, if: condition) { $0.set(fields) }
            }
        })

    private static let delete = CommandSpec(
        name: "collection delete",
        summary: "delete a document if it exists",
        operands: "<collection> <id>",
        operandCount: 2...2,
        options: RemoteURL.options + [condition],
        run: { arguments in
            let condition = try writeCondition(arguments)
            try await withCollection(arguments, .one) { documents, _ in
                try await documents.delete(arguments.operands[1], if: condition)
            }
        })

    private static let increment = CommandSpec(
        name: "collection increment",
        summary: "add to a numeric field of a document",
        operands: "<collection> <id> <field> [number]",
        operandCount: 3...4,
        options: RemoteURL.options,
        discussion: """
            Concurrent increments are all applied. The default number is 1:
              trebuchet collection increment posts 1 likes
            """,
        run: { arguments in
            let (id, field) = (arguments.operands[1], arguments.operands[2])
            let text = arguments.operands.count > 3 ? arguments.operands[3] : "1"
            if let whole = Int64(text) {
                return try await withCollection(arguments, .one) { documents, _ in
                    try await documents.increment(id, field, by: whole)
                }
            }
            guard let number = Double(text), number.isFinite else { throw UsageError("'\(text)' is not a number") }
            try await withCollection(arguments, .one) { documents, _ in
                try await documents.increment(id, field, by: number)
            }
        })

    private static let link = CommandSpec(
        name: "collection link",
        summary: "add a value, such as the id of another document, to an array field",
        operands: "<collection> <id> <field> <json>",
        operandCount: 4...4,
        options: RemoteURL.options + [
            OptionSpec("--in", "COLLECTION", "collection that must have a document with this id")
        ],
        discussion: #"""
            Concurrently added values are retained:
              trebuchet collection link todos 1 assignees '"ada"' --in people
            """#,
        run: { arguments in
            let target = try JSONArgument.value(arguments.operands[3])
            try await withCollection(arguments, .one) { documents, _ in
                try await documents.link(
                    arguments.operands[1], arguments.operands[2], to: target, in: arguments.string("--in"))
            }
        })

    private static let unlink = CommandSpec(
        name: "collection unlink",
        summary: "remove a value from an array field",
        operands: "<collection> <id> <field> <json>",
        operandCount: 4...4,
        options: RemoteURL.options,
        run: { arguments in
            let target = try JSONArgument.value(arguments.operands[3])
            try await withCollection(arguments, .one) { documents, _ in
                try await documents.unlink(arguments.operands[1], arguments.operands[2], from: target)
            }
        })

    private static let condition = OptionSpec("--if", "FIELD=JSON", "apply only if the field has this value")

    private static func writeCondition(_ arguments: ParsedArguments) throws -> WriteCondition? {
        guard let text = arguments.string("--if") else { return nil }
        let (field, value) = try QueryArguments.equation(text, of: "--if")
        return .field(field, equals: value)
    }

    private static func withCollection(
        _ arguments: ParsedArguments, _ query: CollectionQuery,
        _ body: @MainActor (Shared<SyncedCollection<AnyDocument>>, TrebuchetClient) async throws -> Void
    ) async throws {
        let backend = TrebuchetBackend(client: try await RemoteURL.connect(arguments))
        let documents = backend.withCurrent {
            Shared(
                .trebuchetCollection(
                    CollectionKey<AnyDocument>(arguments.operands[0]), where: query.conditions, order: query.order,
                    limit: query.limit, after: query.after))
        }
        try await body(documents, backend.client)
        await backend.client.close()
    }

    private static func printChanges(
        of documents: Shared<SyncedCollection<AnyDocument>>, count: Int?, until end: UntilSignal
    ) async throws {
        var shown: [AnyDocument]?
        var lastError: String?
        var printed = 0
        for await value in documents.updates {
            let error = value.error.map { LogLine.of("\($0)") }
            if let error, error != lastError, shown != nil { Console.error("trebuchet collection watch: \(error)") }
            lastError = error
            guard !value.isLoading, value.items.elements != shown else { continue }
            // Rejected before the first result.
            if shown == nil, value.lastSyncedAt == nil, let error = value.error { throw error }
            end.serverAnswered()
            shown = value.items.elements
            Console.print(LogLine.ofJSON(JSONArgument.text(.array(value.items.map(\.value)))))
            printed += 1
            if printed == count { return }
        }
    }
}

extension CollectionQuery {
    /// A minimal query for commands that only write.
    fileprivate static let one = CollectionQuery(limit: 1)

    /// Returns a query for the document with an id, which may be a string or a number in its JSON.
    fileprivate static func document(_ id: String) -> CollectionQuery {
        CollectionQuery(where: [.field("id", isIn: [.string(id)] + (Int64(id).map { [.integer($0)] } ?? []))])
    }
}
