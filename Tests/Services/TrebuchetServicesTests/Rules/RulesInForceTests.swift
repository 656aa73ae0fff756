import Relays
import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

/// Rules at a server, as clients experience them.
@MainActor @Suite(.timeLimit(.minutes(5))) struct RulesInForceTests {
    private static let secret = "0123456789abcdef"

    private func book(_ text: String) throws -> RulesFile { try RulesFile(json: Array(text.utf8)) }

    private func run(
        _ rules: any CollectionRules, _ limits: CollectionLimits = CollectionLimits(),
        _ body: (CollectionTestEnvironment) async throws -> Void
    ) async throws {
        try await CollectionTestEnvironment.run(rules: rules, limits: limits) { environment in
            let doorman = RulesTestServer(actorSystem: environment.server.actorSystem)
            await environment.server.expose(doorman, as: RulesTestServer.name)
            try await body(environment)
        }
    }

    private func mutations(_ commands: [DocumentCommand], from first: Int = 1) -> [DocumentMutation] {
        commands.enumerated().map { DocumentMutation(number: first + $0, command: $1) }
    }

    private func fields(_ todo: Todo) throws -> JSONObject { try JSONValue(encoding: todo).decode(JSONObject.self) }

    private func connected(_ environment: CollectionTestEnvironment, _ name: String = "nobody") async throws
        -> CollectionTestClient
    {
        let guest = environment.guest(name)
        try await guest.client.connect()
        return guest
    }

    private func become(_ guest: CollectionTestClient, _ id: String?, _ roles: Set<String> = []) async throws {
        try await guest.client.resolve(RulesTestServer.self, id: RulesTestServer.name).become(id, roles)
    }

    @Test("updates and links can neither change a document's owner nor bypass a rule")
    func updates() async throws {
        let rules = try book(
            #"{"collections":{"todos":{"update":"signed-in","fields":{"owner":{"immutable":true},"#
                + #""tags":{"type":"array","maxLength":1},"done":{"type":"boolean"}}}}}"#)
        try await run(rules) { environment in
            let ada = try await connected(environment, "ada")
            let commands: [DocumentCommand] = [
                .add("a", ["owner": .string("ada"), "tags": .array([])]),
                .update(id: "a", fields: ["owner": .string("eve")]), .update(id: "a", fields: ["done": .integer(1)]),
                .link(id: "a", field: "tags", target: .string("x")),
                .link(id: "a", field: "tags", target: .string("y")),
                .link(id: "a", field: "done", target: .string("y")), .update(id: "a", fields: ["done": .bool(true)]),
            ]
            let errors = try await ada.collection().commit(mutations(commands), from: Self.secret).map(\.error)
            let rule = "collections.todos.fields"
            #expect(
                errors == [
                    nil,
                    .forbidden(.update, id: "a", reason: "field 'owner' is immutable (\(rule).owner.immutable)"),
                    .invalidDocument("field 'done' must be a boolean (\(rule).done.type)"), nil,
                    .invalidDocument("field 'tags' has 2 elements; the limit is 1 (\(rule).tags.maxLength)"),
                    .invalidDocument("field 'done' must be a boolean (\(rule).done.type)"), nil,
                ])
        }
    }

    @Test("closures receive the writer and the document before and after, and the reader of each document")
    func closures() async throws {
        let rules = ClosureRules { principal, change, collection throws(CollectionError) in
            guard collection == "todos", change.after?.fields["creator"] == change.before?.fields["creator"] else {
                throw change.forbidden("it stays whose it is")
            }
            guard change.before == nil || principal?.id == change.document.creator else { throw change.forbidden() }
        } read: { principal, document, _ in
            document.creator == principal?.id || document.fields["isDone"] == .bool(true)
        }
        try await run(rules) { environment in
            let (ada, eve) = (try await connected(environment, "ada"), try await connected(environment, "eve"))
            let commands: [DocumentCommand] = [
                .add("a", try fields(Todo(id: "a", isDone: true))), .add("b", try fields(Todo(id: "b"))),
                .update(id: "b", fields: ["creator": .string("eve")]),
            ]
            let errors = try await ada.collection().commit(mutations(commands), from: Self.secret).map(\.error)
            #expect(errors == [nil, nil, .forbidden(.update, id: "b", reason: "it stays whose it is")])
            let other = try await eve.collection().commit(mutations([.delete(id: "a")]), from: "eve's own secret")
            #expect(other.map(\.error) == [.forbidden(.delete, id: "a")])
            let elsewhere = try await eve.collection("x").commit(mutations([.add("a")]), from: "eve's own secret")
            #expect(elsewhere.map(\.error) == [.forbidden(.create, id: "a", reason: "it stays whose it is")])
            await shows(eve.todos()) { $0.items.ids == ["a"] }
            await shows(ada.todos()) { $0.items.ids == ["a", "b"] }
        }
    }

    @Test("a user sees only their own documents; with a custom role, all of them")
    func ownDocuments() async throws {
        try await run(try book(#"{"roles":["editor"],"collections":{"todos":{"read":["creator","editor"]}}}"#)) {
            environment in
            let (ada, eve) = (environment.guest("ada"), environment.guest("eve"))
            try await ada.todos().create(Todo(id: "ada's"))
            let eves = eve.todos()
            try await eves.create(Todo(id: "eve's"))
            await shows(eves) { $0.items.ids == ["eve's"] }
            await shows(environment.guest().todos()) { !$0.isLoading && $0.items.isEmpty }
            let editor = try await connected(environment)
            try await become(editor, "ed", ["editor"])
            await shows(editor.todos()) { $0.items.ids == ["ada's", "eve's"] }
        }
    }

    @Test("a granted role shows more immediately, and a revoked one hides it, including in open queries")
    func principalChanges() async throws {
        try await run(try book(#"{"roles":["editor"],"collections":{"todos":{"read":"editor"}}}"#)) { environment in
            let writer = try await connected(environment, "ada")
            _ = try await writer.collection().commit(
                mutations([.add("a", try fields(Todo(id: "a")))]), from: Self.secret)
            let guest = try await connected(environment)
            let todos = guest.todos()
            await shows(todos) { !$0.isLoading }
            #expect(todos.wrappedValue.items.isEmpty)
            try await become(guest, "ed", ["editor"])
            await shows(todos) { $0.items.ids == ["a"] }
            // The client knows the name of the view, which is useless now.
            let ticket = try await guest.collection().open(.all)
            try await become(guest, "ed", ["user"])
            await shows(todos) { $0.items.isEmpty }
            let view = try guest.client.resolve(CollectionView.self, id: ticket.view)
            var results = await view.observeResult().makeAsyncIterator()
            #expect(await results.next() == nil)
            #expect(await eventually { environment.host.queryCount <= 2 })
        }
    }

    /// Returns true if an observer that has only the name, and has not opened the query, is refused after a change.
    @Test("an open query counts for the user that its connection has now")
    func queryQuota() async throws {
        var limits = CollectionLimits()
        (limits.queriesPerPrincipal, limits.idleQueryTime) = (1, .zero)
        try await run(CreatorRules(), limits) { environment in
            let (first, second) = (try await connected(environment, "ada"), try await connected(environment, "ada"))
            let third = try await connected(environment, "bob")
            _ = try await first.collection().open(CollectionQuery(limit: 1))
            await #expect(throws: CollectionError.tooManyQueries(limit: 1)) {
                try await second.collection().open(CollectionQuery(limit: 2))
            }
            try await become(first, "bob")
            #expect(
                await eventually {
                    (try? await second.collection().open(CollectionQuery(limit: 2))) != nil
                })
            await #expect(throws: CollectionError.tooManyQueries(limit: 1)) {
                try await third.collection().open(CollectionQuery(limit: 3))
            }
            // A second query of another user is too many for that one, and ends.
            try await become(first, "ada")
            #expect(await eventually { environment.host.queryCount == 1 })
            _ = try await third.collection().open(CollectionQuery(limit: 3))
        }
    }

    private func losesView(
        _ environment: CollectionTestEnvironment, _ observer: CollectionTestClient, _ name: String,
        after change: () async throws -> Void
    ) async throws -> Bool {
        let view = try observer.client.resolve(CollectionView.self, id: name)
        let (seen, isOver) = (StateRelay(0), StateRelay(false))
        let reading = Task {
            for await _ in await view.observeResult() { seen.update { $0 += 1 } }
            isOver.update { $0 = true }
        }
        defer { reading.cancel() }
        #expect(await eventually { seen.currentValue > 0 })
        try await change()
        return await eventually { isOver.currentValue }
    }

    @Test("an observer of a result by its name, without an open query, loses it with the permission to read it")
    func observers() async throws {
        let editors = try book(#"{"roles":["editor"],"collections":{"todos":{"read":"editor"}}}"#)
        try await run(editors) { environment in
            let (ed, eve) = (try await connected(environment), try await connected(environment))
            try await become(ed, "ed", ["editor"])
            try await become(eve, "eve", ["editor"])
            let view = try await ed.collection().open(.all).view
            #expect(try await losesView(environment, eve, view) { try await become(eve, "eve", ["user"]) })
            let again = try await eve.collection().open(.all).view
            #expect(again != view, "the observer is shown another view")
        }
    }

    @Test("an observer of a result by its name loses it when the rules no longer show it to all")
    func observersUnderOtherRules() async throws {
        try await run(CreatorRules()) { environment in
            let (ed, eve) = (try await connected(environment), try await connected(environment, "eve"))
            let view = try await ed.collection().open(.all).view
            let rules = try book(#"{"collections":{"todos":{"read":"creator"}}}"#)
            #expect(try await losesView(environment, eve, view) { environment.host.replaceRules(rules) })
        }
    }

    @Test("two connections of one user with different claims are each shown the documents that they may read")
    func claims() async throws {
        let rules = ClosureRules { _, _, _ in
        } read: { principal, document, _ in
            document.fields["title"] == principal?.claims["team"].map { .string($0) }
        }
        try await run(rules) { environment in
            let (red, blue) = (try await connected(environment), try await connected(environment))
            for (guest, team, session) in [(red, "red", "1"), (blue, "blue", "2")] {
                try await guest.client.resolve(RulesTestServer.self, id: RulesTestServer.name)
                    .become("ada", claiming: ["team": team, "session": session])
            }
            let todos = [try fields(Todo(id: "r", title: "red")), try fields(Todo(id: "b", title: "blue"))]
            _ = try await red.collection().commit(
                mutations([.add("r", todos[0]), .add("b", todos[1])]), from: Self.secret)
            #expect(try await red.collection().get(.all).documents.map(\.id) == ["r"])
            #expect(try await blue.collection().get(.all).documents.map(\.id) == ["b"])
            // Another session of the user, with identical claims, shares the evaluation.
            let other = try await connected(environment)
            try await other.client.resolve(RulesTestServer.self, id: RulesTestServer.name)
                .become("ada", claiming: ["team": "red", "session": "3"])
            let tickets = [try await red.collection().open(.all), try await other.collection().open(.all)]
            #expect(tickets[0].view == tickets[1].view)
        }
    }

    @Test("a user who may not delete a document may not make it expire sooner either")
    func shorterLife() async throws {
        let rules = try book(#"{"collections":{"todos":{"update":"anyone","delete":"nobody"}}}"#)
        try await run(rules) { environment in
            let eve = try await connected(environment, "eve")
            let commands: [DocumentCommand] = [
                .add("a"), .expire(id: "a", expiresIn: .milliseconds(1)), .expire(id: "a", expiresIn: .seconds(3_600)),
                .create(id: "b", fields: ["id": .string("b")], expiresIn: .seconds(600)),
                .expire(id: "b", expiresIn: .seconds(3_600)), .expire(id: "b", expiresIn: .seconds(1_800)),
                .expire(id: "b", expiresIn: nil), .expire(id: "b", expiresIn: .seconds(3_600)),
            ]
            let errors = try await eve.collection().commit(mutations(commands), from: Self.secret).map(\.error)
            func refused(_ id: String) -> CollectionError {
                .forbidden(.delete, id: id, reason: "only: nobody (collections.todos.delete)")
            }
            #expect(errors == [nil, refused("a"), refused("a"), nil, nil, refused("b"), nil, refused("b")])
        }
        let closure = ClosureRules { _, change, _ throws(CollectionError) in
            guard change.action != .delete else { throw change.forbidden("kept") }
        }
        try await run(closure) { environment in
            let eve = try await connected(environment, "eve")
            let errors = try await eve.collection().commit(
                mutations([.add("a"), .expire(id: "a", expiresIn: .seconds(1))]), from: Self.secret
            ).map(\.error)
            #expect(errors == [nil, .forbidden(.delete, id: "a", reason: "kept")])
        }
    }

    @Test("rules replaced at a running server apply to the next write, and to shown documents")
    func otherRules() async throws {
        try await run(CreatorRules()) { environment in
            let (ada, eve) = (try await connected(environment, "ada"), try await connected(environment, "eve"))
            let (adas, eves) = (ada.todos(), eve.todos())
            try await adas.create(Todo(id: "a"))
            await shows(eves) { $0.items.ids == ["a"] }
            environment.host.replaceRules(
                try book(
                    #"{"collections":{"*":{"read":"creator","create":"nobody","limits":{"documentBytes":1}}}}"#))
            await shows(eves) { $0.items.isEmpty }
            await shows(adas) { $0.items.ids == ["a"] }
            await #expect(
                throws: CollectionError.forbidden(.create, id: "b", reason: "only: nobody (collections.*.create)")
            ) {
                try await eves.create(Todo(id: "b"))
            }
            let large = try await ada.collection().commit(
                mutations([.update(id: "a", fields: ["title": .string("x")])]), from: Self.secret)
            guard case .documentTooLarge("a", _, limit: 1)? = large[0].error else {
                Issue.record("\(large)")
                return
            }
            environment.host.replaceRules(CreatorRules())
            await shows(eves) { $0.items.ids == ["a"] }
            try await eves.create(Todo(id: "b"))
            await shows(adas) { $0.items.ids == ["a", "b"] }
        }
    }

    @Test("a collection has separate limits for documents, bytes and the writes of a connection")
    func limits() async throws {
        let rules = try book(
            #"""
            {"collections": {
              "few": {"limits": {"documents": 1}}, "small": {"limits": {"bytes": 60}},
              "slow": {"limits": {"writesPerSecond": 0.001, "writesAtOnce": 2}}
            }}
            """#)
        var limits = CollectionLimits()
        // One principal may use all of it.
        limits.principalQuotaDivisor = 1
        try await run(rules, limits) { environment in
            let ada = try await connected(environment, "ada")
            func commit(_ name: String) async throws -> [CollectionError?] {
                try await ada.collection(name).commit(
                    mutations([.add("a"), .add("b"), .add("c"), .add("d"), .add("e"), .add("f")]), from: Self.secret
                ).map(\.error)
            }
            #expect(try await commit("few").dropFirst() == Array(repeating: .tooManyDocuments(limit: 1), count: 5)[...])
            #expect(try await commit("small").last == .collectionTooLarge(limit: 60))
            #expect(try await commit("slow") == [nil, nil], "the other mutations are not accepted")
            let other = mutations([.add("c")], from: 3)
            let error = await #expect(throws: CollectionError.self) {
                _ = try await ada.collection("slow").commit(other, from: Self.secret)
            }
            guard case .rateLimited? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(try await commit("free") == Array(repeating: nil, count: 6))
            let bob = try await connected(environment, "bob")
            #expect(try await bob.collection("slow").commit(other, from: "another's secret").count == 1)
        }
    }

    @Test("an error of an older server, without a reason, is understood, and vice versa")
    func oldErrors() throws {
        let old = #"{"forbidden":{"_0":"update","id":"a"}}"#
        let error = CollectionError.forbidden(.update, id: "a")
        #expect(try JSONValue(json: Array(old.utf8)).decode(CollectionError.self) == error)
        #expect(try String(decoding: JSONValue(encoding: error).json, as: UTF8.self) == old)
        #expect("\(error)" == "the rules of the collection do not allow you to update document 'a'")
        #expect(
            "\(CollectionError.forbidden(.update, id: "a", reason: "r"))"
                == "the rules of the collection do not allow you to update document 'a': r")
    }
}
