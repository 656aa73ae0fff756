import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Calls that one node carries to another, whatever their client calls them.
@Suite(.timeLimit(.minutes(1))) struct RelayedCallsTests {
    @Test("a call under the callID of one that was cancelled gets its own answer", arguments: [0, 1])
    func callIDAgain(node: Int) async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names(1)[0]
            let client = try await nodes[node].textClient()
            for number in 1...20 {
                client.call("1", name, "wait()")
                client.cancel("1")
                client.call("1", name, "add(_:)", [1])
                #expect(await eventually { client.answers("1").count == number * 2 })
            }
            let errors = client.answers("1").map(\.error)
            #expect(errors == (1...20).flatMap { _ in ["cancelled", ""] })
            client.abort()
        }
    }

    @Test("an @Idempotent call that was cancelled and is called again under its number is the same call")
    func keptCallAgain() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            for _ in 1...2 {
                client.call("7", name, "addOnce(_:)", [5], isKept: true)
                client.cancel("7")
            }
            client.call("8", name, "add(_:)", [0])
            #expect(await eventually { client.answers("8").count == 1 })
            client.call("7", name, "addOnce(_:)", [5], isKept: true)
            #expect(await eventually { client.answers("7").last?.text.contains(#""result":5}"#) == true })
            client.abort()
        }
    }

    @Test("calls of one client to one actor start in their order when the actor moves", arguments: 1...3)
    func order(round: Int) async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            let names = nodes[1].names(8)
            let client = try await nodes[0].textClient()
            let isOver = Flag()
            async let calls = callInTurn(names, client, until: isOver)
            #expect(await eventually { client.answers("500").count == 1 })
            await nodes[1].server.shutdown()
            #expect(await eventually { nodes.allSatisfy { $0 === nodes[1] || $0.server.actorCount > 0 } })
            isOver.set()
            let count = await calls
            #expect(await eventually { client.messages.count == count })
            let answers = client.messages
            #expect(answers.count { $0.text.contains(#""result":true}"#) } == count)
            client.abort()
        }
    }

    /// Calls actors one after the other, without waiting for more than a few hundred answers. Returns how many calls that were.
    private func callInTurn(_ names: [String], _ client: TextClient, until isOver: Flag) async -> Int {
        var number = 0
        while !isOver.isSet {
            for name in names {
                number += 1
                client.call("\(number)", name, "follow(_:)", [number])
            }
            _ = await eventually { client.messages.count + 400 > number }
        }
        return number
    }
}
