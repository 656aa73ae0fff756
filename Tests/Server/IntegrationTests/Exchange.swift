import Foundation
import TestSupport
import Testing

/// The recorded messages between a client of protocol 2 and its server, one per line: `>` to the server, `<` from it.
struct Exchange {
    private struct RecordedMessage {
        let isToServer: Bool
        let text: String
    }

    private let lines: [RecordedMessage]

    /// - Parameter name: the name of a file in the folder Exchanges.
    init(_ name: String) throws {
        let path = try #require(Bundle.module.path(forResource: name, ofType: "txt", inDirectory: "Exchanges"))
        lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
            RecordedMessage(isToServer: $0.hasPrefix("> "), text: String($0.dropFirst(2)))
        }
    }

    /// The client's messages, in order.
    var requests: [String] { lines.filter(\.isToServer).map(\.text) }

    /// The server's response to a call.
    func answer(to callID: String) throws -> OldMessage? { try answers.first { $0.callID == callID } }

    /// The values of a stream.
    func values(of streamID: String?) throws -> [String] {
        try answers.filter { $0.kind == "streamData" && $0.streamID == streamID }.compactMap(\.value)
    }

    private var answers: [OldMessage] {
        get throws { try lines.filter { !$0.isToServer }.map { try OldMessage($0.text) } }
    }
}

/// A message of protocols 1 and 2.
struct OldMessage: Sendable {
    /// A filter of version 2.
    struct Filter: Sendable {
        let name: String?
        let parameters: [String: String]
    }

    let kind: String
    let callID: String?
    let streamID: String?
    let target: String?
    let actor: String?
    let errorMessage: String?
    let sequence: Int?
    let timestamp: String?
    let filter: Filter?
    /// The JSON of a result or a stream's value, with sorted members; nil for a call without a result, and for an error.
    let value: String?

    init(_ text: String) throws {
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
        let payload = try #require(object["payload"] as? [String: Any])
        kind = try #require(object["type"] as? String)
        callID = payload["callID"] as? String
        streamID = payload["streamID"] as? String
        target = payload["targetIdentifier"] as? String
        actor = (payload["actorID"] as? [String: Any])?["id"] as? String
        errorMessage = payload["errorMessage"] as? String
        sequence = payload["sequenceNumber"] as? Int
        timestamp = payload["timestamp"] as? String
        filter = (payload["streamFilter"] as? [String: Any]).map {
            Filter(name: $0["name"] as? String, parameters: $0["parameters"] as? [String: String] ?? [:])
        }
        let encoded = (payload["result"] ?? payload["data"]) as? String
        value = try encoded.flatMap { encoded in
            guard !encoded.isEmpty else { return nil }
            return try Self.ordered(try #require(Data(base64Encoded: encoded)))
        }
    }

    static func ordered(_ json: Data) throws -> String {
        let object = try JSONSerialization.jsonObject(with: json, options: .fragmentsAllowed)
        let data = try JSONSerialization.data(withJSONObject: object, options: [.fragmentsAllowed, .sortedKeys])
        return String(decoding: data, as: UTF8.self)
    }
}

/// The client's side of an exchange with a current server.
final class OldClient {
    let peer: RawPeer
    /// All received messages.
    private(set) var received: [OldMessage] = []

    init(_ peer: RawPeer) { self.peer = peer }

    /// Sends a message and waits for its response: a `response`, a `streamStart`, or the end of the stream it names.
    func ask(_ text: String) async throws -> OldMessage {
        let sent = try OldMessage(text)
        peer.send(text)
        return try await next { message in
            switch message.kind {
            case "response", "streamStart":
                sent.callID.map { message.callID == $0 } ?? (message.streamID == sent.streamID)
            case "streamError": sent.callID == nil && message.streamID == sent.streamID
            default: false
            }
        }
    }

    /// Calls a method by its readable name.
    @discardableResult
    func call(_ actor: String, _ target: String, _ arguments: String...) async throws -> OldMessage {
        let encoded = arguments.map { "\"\(Data($0.utf8).base64EncodedString())\"" }.joined(separator: ",")
        return try await ask(Self.invocation(actor, target, #","arguments":[\#(encoded)]"#))
    }

    func observe(_ actor: String, _ stream: String, filter: String? = nil) async throws -> OldMessage {
        try await ask(Self.invocation(actor, stream, filter.map { #","streamFilter":\#($0)"# } ?? ""))
    }

    static func invocation(_ actor: String, _ target: String, _ more: String = "", version: Int? = 2) -> String {
        #"{"type":"invocation","payload":{"callID":"\#(UUID().uuidString)","actorID":{"id":"\#(actor)","host":"127.0.0.1","#
            + #""port":9911},"targetIdentifier":"\#(target)"\#(version.map { #","protocolVersion":\#($0)"# } ?? "")\#(more)}}"#
    }

    /// The next message that satisfies a condition; fails when none arrives for 40 seconds.
    func next(where isWanted: (OldMessage) -> Bool) async throws -> OldMessage {
        while true {
            try #require(await eventually { peer.waitingCount > 0 }, "nothing came")
            let message = try OldMessage(
                try #require(await peer.nextText(), "the connection ended"))
            received.append(message)
            if isWanted(message) { return message }
        }
    }

    /// Waits for the first value of a new stream. An earlier call may change the state before: the first value is then the one after it.
    func firstValue(of start: OldMessage) async throws {
        guard values(of: start.streamID).isEmpty else { return }
        _ = try await next { $0.kind == "streamData" && $0.streamID == start.streamID }
    }

    /// The received values of a stream.
    func values(of streamID: String?) -> [String] {
        received.filter { $0.kind == "streamData" && $0.streamID == streamID }.compactMap(\.value)
    }
}
