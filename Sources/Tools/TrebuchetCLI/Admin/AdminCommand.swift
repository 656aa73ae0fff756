import Commands
import Platform
import TrebuchetServices

/// `trebuchet admin`: administers a running server, over a Unix socket beside its data.
enum AdminCommand {
    static let spec = CommandSpec(
        name: "admin",
        summary: "manage documents, rooms, accounts and roles of a running server on this machine",
        subcommands: [
            collections, documents, removeDocument, removeCollection, export, importing, rooms, members, kick, accounts,
            sessions, grant, revoke, removeAccount, endSession,
        ],
        discussion: """
            Connects to the server's admin socket, a Unix socket that only root and the server's user can open, never over the
            network. The option 'serve --admin' opens an HTTP endpoint with metrics instead. Rules do not apply.
            Select the server by the file of its --data or by its --admin-socket:
              trebuchet serve --data chat.db
              trebuchet admin collections --data chat.db
            Put operands that begin with a dash after --:
              trebuchet admin end-session --data chat.db --yes -- -Xa3
            See Docs/Guides/Admin.md.
            """,
        run: { _ in })

    private static func example(_ text: String) -> String { "  trebuchet admin " + text }

    private static let roomNames = "A room name is type and id, as 'trebuchet admin rooms' lists it:\n"

    // MARK: Collections

    private static let collections = CommandSpec(
        name: "admin collections", summary: "list collections with documents",
        options: AdminListing<CollectionSummary>.options, discussion: example("collections --data chat.db"),
        run: { arguments in
            try await AdminListing(
                columns: ["COLLECTION", "DOCUMENTS", "BYTES"], page: { .collections(after: $0, limit: $1) },
                entries: { if case .collections(let found) = $0 { found } else { nil } }, name: { $0.name },
                cells: { [$0.name, "\($0.documents)", "\($0.bytes)"] }
            ).print(arguments)
        })

    private static let documents = CommandSpec(
        name: "admin documents", summary: "list the documents of a collection", operands: "<collection>",
        operandCount: 1...1, options: AdminListing<Document>.options,
        discussion: example("documents messages --data chat.db --limit 20"),
        run: { arguments in
            let name = arguments.operands[0]
            try await AdminListing(
                columns: ["ID", "CREATOR", "FIELDS"],
                page: { .documents(collection: name, after: $0, limit: $1) },
                entries: { if case .documents(let found) = $0 { found } else { nil } }, name: { $0.id.text },
                cells: { [$0.id.text, $0.creator ?? "-", shortened(JSONArgument.text($0.value))] }
            ).print(arguments)
        })

    private static func shortened(_ text: String) -> String { text.count > 100 ? text.prefix(99) + "…" : text }

    private static let removeDocument = CommandSpec(
        name: "admin remove-document", summary: "remove a document of any creator", operands: "<collection> <id>",
        operandCount: 2...2, options: AdminClient.options + [DestructiveActionPrompt.option],
        discussion: example("remove-document messages 17 --data chat.db"),
        run: { arguments in
            let (name, id) = (arguments.operands[0], arguments.operands[1])
            try DestructiveActionPrompt.requireConfirmation(
                "remove document '\(id)' of collection '\(name)'?", arguments)
            let answer = try await AdminClient(arguments).request(
                .removeDocuments(collection: name, ids: [DocumentID(id)]))
            guard case .removed(let count) = answer else { throw AdminClient.unexpected(answer) }
            guard count > 0 else {
                throw AdminClient.RequestRejected(
                    description: "document '\(id)' does not exist in collection '\(name)'")
            }
            Console.print("removed document '\(id)' of collection '\(name)'")
        })

    private static let removeCollection = CommandSpec(
        name: "admin remove-collection", summary: "remove all documents of a collection", operands: "<collection>",
        operandCount: 1...1, options: AdminClient.options + [DestructiveActionPrompt.option],
        discussion: """
            Removes the oldest documents first, in batches, and reports progress on standard error:
              trebuchet admin remove-collection drafts --data chat.db --yes
            """,
        run: { arguments in
            let (name, part) = (arguments.operands[0], 5_000)
            try DestructiveActionPrompt.requireConfirmation(
                "remove collection '\(name)' with all its documents?", arguments)
            let client = try AdminClient(arguments)
            var count = 0
            while true {
                let answer = try await client.request(.removeOldest(collection: name, limit: part))
                guard case .removed(let removed) = answer else { throw AdminClient.unexpected(answer) }
                count += removed
                guard removed == part else { break }
                Console.error("trebuchet admin remove-collection: \(count.counted("document")) so far")
            }
            guard count > 0 else {
                throw AdminClient.RequestRejected(description: "collection '\(name)' has no documents")
            }
            Console.print("removed collection '\(name)' with \(count.counted("document"))")
        })

    private static let export = CommandSpec(
        name: "admin export", summary: "print the documents of one collection or all as JSON lines",
        operands: "[collection]", operandCount: 0...1, options: AdminClient.options,
        discussion: """
            Each collection is exported as of one point in time, with the ids of the creators:
              trebuchet admin export --data chat.db > chat.jsonl
              trebuchet admin export messages --data chat.db
            Reports progress on standard error. Control-C stops the export with exit code 130.
            """,
        run: { try await DocumentExport.run($0) })

    private static let importing = CommandSpec(
        name: "admin import", summary: "import exported documents", operands: "[file]", operandCount: 0...1,
        options: AdminClient.options + [
            OptionSpec("--replace", nil, "replace existing documents"),
            OptionSpec("--skip", nil, "keep existing documents (the default)"),
            OptionSpec("--into", "COLLECTION", "import into this collection; lines may be plain documents"),
        ],
        discussion: """
            Reads standard input without a file or with -. Stops at the first invalid line and reports its number. The documents
            before that line are imported, and a repeated import does not change them:
              trebuchet admin import chat.jsonl --data chat.db --replace
              echo '{"id":"1","title":"Milk"}' | trebuchet admin import --into todos --data chat.db
            """,
        run: { try await DocumentImport.run($0) })

    // MARK: Rooms

    private static let rooms = CommandSpec(
        name: "admin rooms", summary: "list rooms with members", options: AdminListing<RoomSummary>.options,
        discussion: example("rooms --data chat.db"),
        run: { arguments in
            try await AdminListing(
                columns: ["ROOM", "MEMBERS"], page: { .rooms(after: $0, limit: $1) },
                entries: { if case .rooms(let found) = $0 { found } else { nil } }, name: { $0.name },
                cells: { [$0.name, "\($0.members)"] }
            ).print(arguments)
        })

    private static let members = CommandSpec(
        name: "admin members", summary: "list the members of a room", operands: "<room name>", operandCount: 1...1,
        options: AdminListing<RoomMemberSummary>.options,
        discussion: roomNames + example("members chat-lobby --data chat.db"),
        run: { arguments in
            let room = arguments.operands[0]
            try await AdminListing(
                columns: ["MEMBER", "ACCOUNT", "HOST", "PRESENCE"],
                page: { .members(room: room, after: $0, limit: $1) },
                entries: { if case .members(let found) = $0 { found } else { nil } }, name: { $0.membershipID },
                cells: { member in
                    [
                        member.membershipID, member.principal ?? "-",
                        member.host ?? (member.isConnected ? "-" : "away"),
                        member.presence.map { shortened(JSONArgument.text($0)) } ?? "-",
                    ]
                }
            ).print(arguments)
        })

    private static let kick = CommandSpec(
        name: "admin kick", summary: "remove a member from a room", operands: "<room name> <member>",
        operandCount: 2...2,
        options: AdminClient.options + [
            OptionSpec("--for", "SECONDS", "time for which the account or connection may not rejoin (60)")
        ],
        discussion: roomNames + example("kick chat-lobby 37h8lw93jjfyf17uk188zo04as --for 3600 --data chat.db"),
        run: { arguments in
            let (room, member) = (arguments.operands[0], arguments.operands[1])
            let seconds = try arguments.int("--for", in: 0...86_400) ?? 60
            let answer = try await AdminClient(arguments).request(
                .kick(membershipID: member, room: room, seconds: seconds))
            try done(
                answer,
                else:
                    "room '\(room)' does not exist or has no member '\(member)'; list them with 'trebuchet admin rooms' and "
                    + "'trebuchet admin members'")
            Console.print("removed member '\(member)' from room '\(room)' for \(seconds) s")
        })

    static func done(_ answer: AdminResponse, else problem: String) throws {
        guard case .done(let isDone) = answer else { throw AdminClient.unexpected(answer) }
        guard isDone else { throw AdminClient.RequestRejected(description: problem) }
    }
}
