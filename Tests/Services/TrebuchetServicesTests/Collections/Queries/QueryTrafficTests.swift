import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// The messages of queries, as received over a connection.
@Suite(.timeLimit(.minutes(5))) struct QueryTrafficTests {
    private static let secret = "0123456789abcdef"

    /// Opens a query and observes its result.
    private func observe(_ peer: ForeignClient, _ collection: String, _ query: String) async throws {
        peer.invoke("open", "collections/\(collection)", "open(_:)", "[\(query)]")
        guard case .object(let ticket)? = await peer.answer("open").answer?.result else {
            Issue.record("no ticket")
            return
        }
        peer.invoke("observe", try #require(ticket["view"]?.string), "observeResult", "[]")
        var first: ForeignClient.Message?
        while first?.type != "streamData" { first = await peer.next() }
    }

    private func commit(_ peer: ForeignClient, _ collection: String, _ number: Int, _ command: String) {
        peer.invoke(
            "c\(number)", "collections/\(collection)", "commit(_:from:)",
            #"[[{"number":\#(number),"command":\#(command)}],"\#(Self.secret)"]"#)
    }

    @Test("a write is in the caller's open query before its response, wherever connection and collection are")
    func ownWrites() async throws {
        try await CollectionTestEnvironment.run { environment in
            for connection in 0..<4 {
                let peer = try await ForeignClient.connect(environment.address)
                for number in 0..<3 {
                    let name = "c\(connection)-\(number)"
                    try await observe(peer, name, #"{"conditions":[],"order":[]}"#)
                    for write in 1...20 {
                        let fields = #"{"id":"d\#(write)"}"#
                        commit(peer, name, write, #"{"create":{"id":"d\#(write)","fields":\#(fields)}}"#)
                        let (before, answer) = await peer.answer("c\(write)")
                        #expect(answer?.type == "response")
                        #expect(before.count == 1 && before.first?.type == "streamData", "\(name), write \(write)")
                        guard case .array(let outcomes)? = answer?.result, case .object(let outcome)? = outcomes.last,
                            case .object(let shown)? = outcome["shown"]
                        else {
                            Issue.record("the response has no shown revision: \(String(describing: answer))")
                            return
                        }
                        #expect(shown.values.first == outcome["revision"])
                    }
                }
                peer.close()
            }
        }
    }

    @Test("a write is sent only to subscribers whose results it changes")
    func untouched() async throws {
        try await CollectionTestEnvironment.run { environment in
            let writer = try await ForeignClient.connect(environment.address)
            let queries = [
                #"{"conditions":[{"field":"owner","comparison":"equal","value":0}]}"#,
                #"{"conditions":[{"field":"owner","comparison":"equal","value":1}]}"#,
                #"{"conditions":[{"field":"n","comparison":"less","value":0}]}"#,
                #"{"order":[{"field":"n","isDescending":false}],"limit":1}"#,
                #"{"conditions":[{"any":[[{"field":"owner","comparison":"equal","value":2}],[{"field":"n","comparison":"less","value":0}]]}]}"#,
            ]
            var readers: [ForeignClient] = []
            commit(writer, "todos", 1, #"{"create":{"id":"first","fields":{"id":"first","owner":5,"n":0}}}"#)
            commit(writer, "todos", 2, #"{"create":{"id":"second","fields":{"id":"second","owner":5,"n":0}}}"#)
            _ = await writer.answer("c2")
            for query in queries {
                let reader = try await ForeignClient.connect(environment.address)
                try await observe(reader, "todos", query)
                readers.append(reader)
            }
            // The writer reads a query that none of its writes affects.
            try await observe(writer, "todos", queries[1])
            for number in 3...22 {
                commit(
                    writer, "todos", number,
                    #"{"create":{"id":"d\#(number)","fields":{"id":"d\#(number)","owner":0,"n":\#(number)}}}"#)
                #expect(await writer.answer("c\(number)").before.isEmpty)
            }
            // Only the connection that opens one of them again is notified, with the response.
            writer.invoke("again", "collections/todos", "open(_:)", "[\(queries[3])]")
            _ = await writer.answer("again")
            var received: [Int] = []
            for reader in readers {
                reader.invoke("end", "collections/todos", "close(_:)", "[{}]")
                let (before, answer) = await reader.answer("end")
                #expect(answer != nil)
                received.append(before.count { $0.type == "streamData" })
            }
            #expect(received[0] >= 1 && received[0] <= 20)
            // The presence of more documents after the limit is no change.
            #expect(received.dropFirst() == [0, 0, 0, 0])
        }
    }
}
