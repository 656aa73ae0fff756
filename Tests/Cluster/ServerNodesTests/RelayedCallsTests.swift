import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Calls forwarded from one node to another, whatever their call IDs.
@Suite(.timeLimit(.minutes(5))) struct RelayedCallsTests {
    @Test("a call that reuses the callID of a cancelled one gets the response to the new call", arguments: [0, 1])
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

    @Test("an @Idempotent call repeated under its number after a cancellation is the same call")
    func repeatedRecordedCall() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let name = nodes[1].names(1)[0]
            let client = try await nodes[0].textClient()
            client.call("6", name, "add(_:)", [0])
            #expect(await eventually { client.answers("6").count == 1 })
            for _ in 1...2 {
                client.call("7", name, "addOnce(_:)", [5], isRepeatable: true)
                client.cancel("7")
            }
            client.call("7", name, "addOnce(_:)", [5], isRepeatable: true)
            #expect(await eventually { client.answers("7").count == 3 })
            client.call("8", name, "add(_:)", [0])
            #expect(await eventually { client.answers("8").count == 1 })
            // The cancellation may have been in time or too late.
            let (answer, sum) = try (#require(client.answers("7").last), #require(client.answers("8").last))
            #expect(sum.text.contains(answer.error.isEmpty ? #""result":5}"# : #""result":0}"#))
            client.abort()
        }
    }

    @Test("calls of one client to one actor start in order when a node stops", arguments: 1...3)
    func order(round: Int) async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            try await callInTurn(nodes[1].names(8), of: nodes[0]) { await nodes[1].server.shutdown() }
        }
    }

    @Test("calls of one client to one actor start in order when a node joins", arguments: 1...3)
    func orderAtArrival(round: Int) async throws {
        let engine = MemoryEngine()
        try await withNodes(["a", "b"], engine: engine) { nodes in
            let third = try Node("c", engine)
            try await callInTurn(nodes[0].names(16) + nodes[1].names(16), of: nodes[0]) {
                try await third.start()
                await ownAll(nodes + [third])
            }
            #expect(third.server.actorCount > 0)
            await third.stop()
        }
    }

    /// Calls actors in turn through a node while `body` runs, and checks that each call followed the previous one.
    private func callInTurn(_ names: [String], of node: Node, while body: () async throws -> Void) async throws {
        let client = try await node.textClient()
        let isOver = Flag()
        async let calls = callInTurn(names, client, until: isOver)
        #expect(await eventually { client.answers("500").count == 1 })
        try await body()
        let count = client.messages.count
        #expect(await eventually { client.messages.count > count + 500 })
        isOver.set()
        let all = await calls
        #expect(await eventually { client.messages.count == all })
        #expect(client.messages.count { $0.text.contains(#""result":true}"#) } == all)
        client.abort()
    }

    /// Calls actors in turn, with at most a few hundred outstanding responses, and returns the number of calls.
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
