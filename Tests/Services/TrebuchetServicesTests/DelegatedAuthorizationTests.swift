import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// An `authorize` that knows the actors of Docs/Guides/Services.md and none of their helper actors, and the effects of its refusals.
@MainActor @Suite(.timeLimit(.minutes(5))) struct DelegatedAuthorizationTests {
    private typealias Rule = @Sendable (_ caller: Caller?, _ actorID: String, _ target: String) -> Bool

    private struct Fixture {
        let address: SocketAddress
        let lines: Journal

        func guest(_ name: String = "nobody") -> CollectionTestClient { CollectionTestClient(name, at: address) }

        /// The log lines about refusals.
        var refusals: [String] { lines.entries.filter { $0.contains("authorize refused") } }
    }

    private func run(_ mayCall: @escaping Rule, _ body: (Fixture) async throws -> Void) async throws {
        var access = AccessPolicy.open
        access.identifiesCallers = true
        access.authenticate = { $0.bearerToken.flatMap { $0 == "nobody" ? nil : Principal(id: $0) } }
        access.authorize = mayCall
        let lines = Journal()
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), access: access, log: ConsoleLog { lines.record($0) })
        CollectionHost.expose(on: server)
        RoomHost.expose(on: server, rules: ListedRooms())
        do {
            try await body(Fixture(address: try await server.start(), lines: lines))
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
    }

    private struct ListedRooms: RoomRules {
        func canJoin(_ principal: Principal?, _ room: String) -> Bool { true }
        func canList(_ principal: Principal?, _ room: String) -> Bool { true }
    }

    @Test("a rule that allows collections and rooms also allows their helper actors, without refusals")
    func helpers() async throws {
        try await run({ _, actor, _ in ["auth", "collections/", "rooms/"].contains { actor.hasPrefix($0) } }) {
            fixture in
            let guest = fixture.guest("ada")
            let todos = guest.todos()
            try await todos.create(Todo(id: "1", title: "Milk"))
            await shows(todos) { $0.items.map(\.title) == ["Milk"] && !$0.isLoading && !$0.isStale }
            let room = guest.backend.withCurrent {
                Shared(
                    .trebuchetPresence(roomType: "chat", roomId: "lobby", initialPresence: JSONValue.object([:])),
                    store: guest.store)
            }
            await shows(room) { $0.isConnected && !$0.isLoading }
            let list = try guest.client.resolve(RoomList.self, id: "room-lists/chat")
            #expect(try await list.list(after: nil, limit: nil) == [RoomSummary(name: "chat-lobby", members: 1)])
            #expect(fixture.refusals.isEmpty)
        }
    }

    @Test("the result of a query is accessible only to callers that may open one, even if its name is known")
    func names() async throws {
        try await run({ caller, actor, _ in
            actor == "collections/open" || (caller?.principal?.id == "ada" && actor == "collections/secret")
        }) { fixture in
            let (ada, bob) = (fixture.guest("ada"), fixture.guest("bob"))
            for guest in [ada, bob] { try await guest.client.connect() }
            let ticket = try await ada.collection("secret").open(CollectionQuery())
            #expect(ticket.view.hasPrefix("collection-views/{collections/secret}/"))
            let secret = try #require(ticket.view.split(separator: "/").last)
            for (guest, view, code) in [
                (ada, ticket.view, nil), (bob, ticket.view, .unauthorized),
                // In a collection that Bob may read: there is no such view.
                (bob, "collection-views/{collections/open}/\(secret)", .actorNotFound),
                (bob, "collection-views/\(secret)", .unauthorized),
                (bob, "collection-views/{collections/open", .unauthorized),
            ] as [(CollectionTestClient, String, TrebuchetError.Code?)] {
                let results = await (try guest.client.resolve(CollectionView.self, id: view)).observeResult()
                var came: QueryResult?
                for await result in results {
                    came = result
                    break
                }
                #expect((came == nil) == (code != nil), "\(view)")
                guard let code else { continue }
                guard case .failed(let error)? = results.outcome else {
                    Issue.record("\(view): \(String(describing: results.outcome))")
                    continue
                }
                #expect(error.code == code, "\(view)")
            }
        }
    }

    /// Rules that return another reader group for each request until they are open: each opened result is refused.
    private final class ChangingReaderRules: CollectionRules {
        let isOpen = Mutex(false)
        let asked = Mutex(0)

        func readerGroup(for principal: Principal?, in collection: String) -> ReaderGroup {
            let number = asked.withLock { asked in
                asked += 1
                return asked
            }
            return .named(isOpen.withLock { $0 } ? "all" : "\(number)")
        }

        func isAllowed(
            _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
        ) -> Bool { true }
    }

    @Test(
        "a result refused repeatedly is an error of the value, is requested less often, and is shown when it becomes readable"
    )
    func refusedResult() async throws {
        let rules = ChangingReaderRules()
        try await CollectionTestEnvironment.run(rules: rules) { fixture in
            let todos = fixture.guest("ada").todos()
            await shows(todos) { ($0.readError as? TrebuchetError)?.code == .unauthorized && !$0.isLoading }
            // Opening and reading the result each call the rules: at 48 attempts a second there would be hundreds of calls by now.
            #expect(rules.asked.withLock { $0 } <= 20)
            rules.isOpen.withLock { $0 = true }
            await shows(todos) { $0.readError == nil && !$0.isLoading && !$0.isStale }
        }
    }

    @Test("a query refused by authorize is an error of the value, and is logged once")
    func refusedQuery() async throws {
        try await run({ _, _, _ in false }) { fixture in
            let guest = fixture.guest("ada")
            for limit in 1...2 {
                await shows(guest.todos(limit: limit)) {
                    ($0.readError as? TrebuchetError)?.code == .unauthorized && !$0.isLoading
                }
            }
            #expect(fixture.refusals.count == 1, "\(fixture.refusals)")
            #expect(fixture.refusals.first?.contains("'open(_:)' of actor 'collections/todos' to 'ada'") == true)
        }
    }

    @Test("each refused subject is logged once an hour, and no more than one a second")
    func log() {
        let lines = Journal()
        let log = DeniedSubjectLog { lines.record($0) }
        let second: UInt64 = 1_000_000_000
        for time in [0, 1, 2, 100] as [UInt64] {
            log.recordDenial("'a' of actor 'b'", .unauthorized, to: nil, at: time * second)
        }
        #expect(lines.entries.count == 1)
        #expect(
            lines.entries.first
                == "authorize refused 'a' of actor 'b' to a caller without a principal (unauthorized); logged at most once an hour"
        )
        for number in 0..<1_000 {
            log.recordDenial("'a' of actor '\(number)'", .unauthorized, to: nil, at: 101 * second)
        }
        #expect(lines.entries.count == 2)
        log.recordDenial("'a' of actor 'b'", .unauthorized, to: nil, at: 4_000 * second)
        #expect(lines.entries.count == 3)
    }
}
