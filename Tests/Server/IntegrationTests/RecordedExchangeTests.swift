import Foundation
import Interop
import Interop2
import Testing
import Trebuchet

/// Replays the recorded requests of a protocol 2 client: this server gives the same kinds of responses, with the same identifiers and
/// values.
@Suite(.timeLimit(.minutes(5))) struct RecordedExchangeTests {
    private static let otherID = UUID(uuidString: "0D8A7A46-2C6B-4E3C-9A0E-1B0C2D3E4F50")!

    /// Exposes the actors of the exchanges.
    private func withClient(_ body: (OldClient, TrebuchetServer) async throws -> Void) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let toggled = try #require(UUID(uuidString: "11D59619-1377-46DB-84C2-B614274F81AF"))
        await server.expose(Counter(actorSystem: server.actorSystem), as: "counter")
        await server.expose(GameServer(actorSystem: server.actorSystem), as: "game")
        await server.expose(
            Interop.TodoList(ids: [Self.otherID, toggled], actorSystem: server.actorSystem), as: "todos")
        let client = OldClient(try await .connect(server.start(), subprotocols: []))
        try await body(client, server)
        client.peer.close()
        await server.shutdown(drain: .zero)
    }

    /// Sends all calls of an exchange and compares each response with the recorded one, or else with `results`: the JSON of a result, nil
    /// for an error. Responses in neither are not compared.
    private func replay(_ exchange: Exchange, to client: OldClient, expecting results: [String: String?]) async throws {
        for request in exchange.requests {
            let sent = try OldMessage(request)
            let callID = try #require(sent.callID)
            let answer = try await client.ask(request)
            if let recorded = try exchange.answer(to: callID) {
                if try !exchange.values(of: recorded.streamID).isEmpty { try await client.firstValue(of: answer) }
                #expect(answer.kind == recorded.kind, "\(request)")
                #expect(answer.target == recorded.target)
                #expect(answer.value == recorded.value, "\(request)")
                #expect(answer.errorMessage == recorded.errorMessage)
                continue
            }
            let isStream = sent.target?.hasPrefix("observe") == true
            #expect(answer.kind == (isStream ? "streamStart" : "response"), "\(request)")
            guard let result = results[String(callID.prefix(8))] else { continue }
            if let result {
                #expect(try answer.value == OldMessage.ordered(Data(result.utf8)), "\(request)")
            } else {
                #expect(answer.errorMessage?.isEmpty == false, "\(request)")
            }
        }
    }

    @Test("calls by mangled names, with results, without and with errors")
    func calls() async throws {
        try await withClient { client, _ in
            try await replay(
                Exchange("calls"), to: client,
                expecting: [
                    "7AD1F334": "42", "8BB8666F": "-9223372036854775766", "7CFA5E84": #"["Ada"]"#,
                    "84EE99E4":
                        #"{"id":"\#(Self.otherID)","isCompleted":false,"title":"Mi\"lk\\ / é 🎉 \u0000 \n\u2028 end"}"#,
                    "55A18816":
                        #"{"id":"11D59619-1377-46DB-84C2-B614274F81AF","isCompleted":false,"title":"toggle me"}"#,
                    "B4FE89E2":
                        #"{"id":"11D59619-1377-46DB-84C2-B614274F81AF","isCompleted":true,"title":"toggle me"}"#,
                    "005DD21E": nil, "1D5F4A30": nil, "7FC99C3D": nil, "BF9AF234": nil, "14FF9186": "1",
                ])
        }
    }

    @Test("an app's session: values of many kinds, and a state with each of its versions")
    func todos() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let ids = try ["3D30E1BE-3E6F-4B4F-9D00-83AB373CF819", "D5DD68EF-FB82-4F30-951A-BCBD6258736A"].map {
            try #require(UUID(uuidString: $0))
        }
        let now = try #require(try? Date("2026-11-21T22:53:25Z", strategy: .iso8601))
        await server.expose(Interop2.TodoList(ids: ids, now: now, actorSystem: server.actorSystem), as: "todos")
        await server.expose(Ender(actorSystem: server.actorSystem), as: "ender")
        let client = OldClient(try await .connect(server.start(), subprotocols: []))
        let exchange = try Exchange("todos")
        try await replay(
            exchange, to: client,
            expecting: [
                "BDE8B7E3": "null", "A7A53920": "1", "3BBE2B5A": "1", "7C8F9ACC": "false", "E74F72CB": "null",
                "91D848DF": "3", "F4C269C1": #""2023-11-14T22:13:20Z""#, "A85289EA": #""AP8B""#, "F412B258": "7",
                "9A0635B4": #""1 x 1.5 true""#, "63BCB8BF": "0.1", "87C548A5": "1e300", "CD38199C": "1",
                "6765D716": "2",
            ])
        for callID in ["3D2693C2-384F-49A0-9071-E7E72195A64E", "5D458E73-1911-4C93-9445-15C8DED09807"] {
            let stream = try #require(client.received.first { $0.callID == callID })
            #expect(stream.streamID.flatMap(UUID.init(uuidString:)) != nil, "\(stream)")
            let recorded = try exchange.values(of: exchange.answer(to: callID)?.streamID)
            #expect(Array(client.values(of: stream.streamID).prefix(recorded.count)) == recorded)
        }
        client.peer.close()
        await server.shutdown(drain: .zero)
    }

    @Test("streams of several states, and a resumed one")
    func streams() async throws {
        try await withClient { client, _ in
            let exchange = try Exchange("streams")
            let requests = exchange.requests
            let counted = try await client.ask(requests[0])
            try await client.firstValue(of: counted)
            try await client.call("counter", "increment()")
            let callID = try #require(counted.callID)
            let recorded = try #require(try exchange.answer(to: callID))
            #expect(counted.kind == recorded.kind)
            #expect(try exchange.values(of: recorded.streamID) == client.values(of: counted.streamID))
            for request in requests.dropFirst() {
                let answer = try await client.ask(request)
                let sent = try OldMessage(request)
                #expect(answer.kind == (sent.target?.hasPrefix("observe") == true ? "streamStart" : "response"))
                if sent.kind == "streamResume" { #expect(answer.streamID == sent.streamID) }
            }
            let sequences = client.received.filter { $0.streamID == counted.streamID }.compactMap(\.sequence)
            #expect(sequences == sequences.sorted() && Set(sequences).count == sequences.count)
            let dates = client.received.compactMap(\.timestamp)
            #expect(!dates.isEmpty && dates.allSatisfy { $0.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/) != nil })
        }
    }

    // MARK: Filters

    /// The counts that a filter admits.
    private func expected(_ filter: OldMessage.Filter, of counts: [Int]) -> [Int] {
        guard filter.name == "threshold", filter.parameters["field"] == "count",
            let value = filter.parameters["value"].flatMap(Double.init)
        else { return counts }
        return counts.filter { count in
            let count = Double(count)
            return switch filter.parameters["comparison"] {
            case "gte", ">=": count >= value
            case "lt", "<": count < value
            case "lte", "<=": count <= value
            case "eq", "==": count == value
            case "neq", "!=": count != value
            default: count > value
            }
        }
    }

    @Test("filters have the meaning of their version; filters unknown to the original server admit all")
    func filters() async throws {
        try await withClient { client, _ in
            var filters: [(streamID: String?, filter: OldMessage.Filter)] = []
            let exchange = try Exchange("filters")
            let more = ["<=", "!="].map { comparison in
                let filter =
                    #"{"type":"predefined","name":"threshold","parameters":{"field":"count","value":"9","comparison":"#
                    + "\"\(comparison)\"}}"
                return OldClient.invocation("counter", "observeState", #","streamFilter":\#(filter)"#)
            }
            for request in exchange.requests + more {
                let answer = try await client.ask(request)
                let sent = try OldMessage(request)
                #expect(answer.kind == "streamStart", "\(request)")
                #expect(answer.target == sent.target)
                if sent.actor == "counter" { filters.append((answer.streamID, try #require(sent.filter))) }
                if let recorded = try exchange.answer(to: sent.callID ?? "") { #expect(recorded.kind == answer.kind) }
            }
            for step in ["5", "4", "1", "-1"] { try await client.call("counter", "add(_:)", step) }
            #expect(filters.count == 25)
            for (streamID, filter) in filters {
                let counts = expected(filter, of: [0, 5, 9, 10, 9])
                #expect(client.values(of: streamID) == counts.map { "{\"count\":\($0)}" }, "\(filter)")
            }
        }
    }

    @Test("a filter on a non-numeric field and on an empty one")
    func otherFields() async throws {
        try await withClient { client, _ in
            let text = #"{"type":"predefined","name":"threshold","parameters":{"field":"players","value":"1"}}"#
            let players = try await client.observe("game", "observeGameState", filter: text).streamID
            let some = #"{"type":"predefined","name":"nonEmpty","parameters":{"field":"players"}}"#
            let joined = try await client.observe("game", "observeGameState", filter: some).streamID
            try await client.call("game", "join(player:)", #""Ada""#)
            #expect(client.values(of: players).count == 2)
            #expect(client.values(of: joined).count == 1)
        }
    }

    @Test("a late subscriber gets the current value through a new filter, and not a stale one through a shared filter")
    func staleValue() async throws {
        try await withClient { client, server in
            let filter = #"{"type":"predefined","name":"threshold","parameters":{"field":"count","value":"9"}}"#
            let first = try await client.observe("counter", "observeState", filter: filter).streamID
            for step in ["11", "-11"] { try await client.call("counter", "add(_:)", step) }
            let late = OldClient(try await .connect(#require(server.address), subprotocols: []))
            let second = try await late.observe("counter", "observeState", filter: filter).streamID
            try await late.call("counter", "add(_:)", "12")
            #expect(client.values(of: first) == [#"{"count":11}"#])
            #expect(late.values(of: second) == [#"{"count":12}"#])
            late.peer.close()
        }
    }
}
