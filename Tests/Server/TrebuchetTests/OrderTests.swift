import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct OrderTests {
    @Test(
        "calls from one connection to one actor start in order, sync and async mixed", arguments: TestLink.allCases,
        [1, 2, 3])
    func mixed(link: TestLink, reactors: Int) async throws {
        let journal = Journal()
        try await withTestServer(link: link, reactors: reactors) { server in
            // One actor for each reactor: some share the connection's reactor.
            for index in 0..<reactors {
                await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter\(index)")
            }
        } body: { client, _ in
            for index in 0..<reactors {
                let waiter = try client.resolve(Waiter.self, id: "waiter\(index)")
                var calls: [Task<Void, any Error>] = []
                for number in 0..<200 {
                    let isAsync = number.isMultiple(of: 3) || number.isMultiple(of: 7)
                    calls.append(
                        Task.immediate {
                            if isAsync { try await waiter.later(number) } else { try await waiter.now(number) }
                        })
                }
                for call in calls { try await call.value }
            }
            let expected = (0..<reactors).flatMap { _ in (0..<200).map(String.init) }
            #expect(journal.entries == expected)
        }
    }

    @Test("an actor on the global pool starts its calls in order", arguments: TestLink.allCases)
    func concurrent(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(ConcurrentList(actorSystem: server.actorSystem), as: "list")
        } body: { client, _ in
            let list = try client.resolve(ConcurrentList.self, id: "list")
            let calls = (0..<200).map { number in
                Task.immediate {
                    number.isMultiple(of: 3)
                        ? try await list.addLater(title: "\(number)") : try await list.add(title: "\(number)")
                }
            }
            for call in calls { _ = try await call.value }
            #expect(try await list.items() == (0..<200).map(String.init))
        }
    }
}
