import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Calls that one node carries to another, whatever their client calls them.
@Suite(.timeLimit(.minutes(5))) struct RelayedCallsTests {
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
            client.call("6", name, "add(_:)", [0])
            #expect(await eventually { client.answers("6").count == 1 })
            for _ in 1...2 {
                client.call("7", name, "addOnce(_:)", [5], isKept: true)
                client.cancel("7")
            }
            client.call("7", name, "addOnce(_:)", [5], isKept: true)
            #expect(await eventually { client.answers("7").count == 3 })
            client.call("8", name, "add(_:)", [0])
            #expect(await eventually { client.answers("8").count == 1 })
            // It was cancelled in time, or not.
            let (answer, sum) = try (#require(client.answers("7").last), #require(client.answers("8").last))
            #expect(sum.text.contains(answer.error.isEmpty ? #""result":5}"# : #""result":0}"#))
            client.abort()
        }
    }

    @Test("calls of one client to one actor start in their order when a node stops", arguments: 1...3)
    func order(round: Int) async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            try await callInTurn(nodes[1].names(8), of: nodes[0]) { await nodes[1].server.shutdown() }
        }
    }

    @Test("and when one comes", arguments: 1...3)
    func orderAtComing(round: Int) async throws {
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

    /// Calls actors one after the other through a node while something happens, and looks that each call was behind the one before.
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
