import Dispatch
import Foundation
import Synchronization
import TrebuchetClient
import TrebuchetServicesClient

/// A transport to a server of the services in memory, with one room and one collection. It delivers on a Dispatch queue, like the
/// system's WebSockets, and speaks the protocol of Docs/Reference/ServicesProtocol.md.
final class ChatServer: ClientTransport {
    private struct Observation {
        let link: Link
        let stream: String
        var sequence: Int64 = 0
    }

    private struct Contents {
        var guests = 0
        var members: [String: JSONObject] = [:]
        var events: Int64 = 0
        var documents: [JSONObject] = []
        var revision: Int64 = 0
        var streams = 0
        var observations: [String: [Observation]] = [:]
        var users: [ObjectIdentifier: String] = [:]
    }

    let address = "chat"
    private let contents = Mutex(Contents())
    private let queue = DispatchQueue(label: "chat")

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        receiver.linkDidOpen(Link(self, receiver))
    }

    /// A connection of a client.
    final class Link: ClientLink {
        let callSession: String? = nil
        private let server: ChatServer
        private let receiver: ConnectionReceiver

        init(_ server: ChatServer, _ receiver: ConnectionReceiver) {
            self.server = server
            self.receiver = receiver
        }

        func send(_ message: [UInt8]) {
            server.queue.async { [self] in server.receive(message, over: self) }
        }

        func close() {
            server.queue.async { [self] in
                server.remove(self)
                receiver.linkDidClose(TransportError(.closed, "closed"))
            }
        }

        func deliver(_ type: String, _ payload: JSONObject) {
            guard let text = try? JSONEncoder().encode(["type": .string(type), "payload": JSONValue.object(payload)])
            else { return }
            text.withUnsafeBytes { receiver.didReceive($0) }
        }
    }

    // MARK: Messages

    private func receive(_ message: [UInt8], over link: Link) {
        guard case .object(let envelope)? = try? JSONDecoder().decode(JSONValue.self, from: Data(message)),
            case .object(let payload)? = envelope["payload"], envelope["type"] == .string("invocation"),
            let call = payload["callID"], case .string(let target)? = payload["targetIdentifier"]
        else { return }
        contents.withLock { contents in
            if target.hasPrefix("observe") { return observe(target, payload, call, link, &contents) }
            var arguments: [JSONValue] = []
            if case .array(let values)? = payload["arguments"] { arguments = values }
            var response: JSONObject = ["callID": call]
            response["result"] = answer(target, arguments, link, &contents)
            link.deliver("response", response)
        }
    }

    /// Executes a call; returns its result.
    private func answer(
        _ target: String, _ arguments: [JSONValue], _ link: Link, _ contents: inout Contents
    ) -> JSONValue? {
        let user = contents.users[ObjectIdentifier(link)]
        switch target {
        case "signInAsGuest()":
            contents.guests += 1
            let id = "guest-\(contents.guests)"
            contents.users[ObjectIdentifier(link)] = id
            return .object([
                "user": .object(["id": .string(id), "isGuest": .bool(true)]), "refreshToken": .string(id),
                "accessToken": .string(id), "accessSeconds": .integer(900),
            ])
        case "join(presence:token:attempt:)":
            let id = session(of: link)
            contents.members[id] = member(id, user, arguments[0])
            defer { sendRoster(&contents) }
            let events: JSONObject = ["epoch": .string("1"), "last": .integer(contents.events)]
            return .object(["session": .string(id), "token": .string(id), "events": .object(events)])
        case "setPresence(_:)":
            contents.members[session(of: link)]?["data"] = arguments[0]
            sendRoster(&contents)
            return nil
        case "patchPresence(_:)":
            if case .object(let patch) = arguments[0] {
                for (name, value) in patch { change(session(of: link), name, value, &contents) }
            }
            sendRoster(&contents)
            return nil
        case "leave(token:)":
            contents.members[session(of: link)] = nil
            sendRoster(&contents)
            return nil
        case "publish(topic:payload:)":
            contents.events += 1
            let number = JSONValue.integer(contents.events)
            let event: JSONObject = [
                "number": number, "topic": arguments[0], "peer": .string(session(of: link)), "payload": arguments[1],
            ]
            send(.object(event), to: "observeEvents", &contents)
            return number
        case "history(topic:after:limit:)": return .array([])
        case "open(_:)":
            let revision = JSONValue.integer(contents.revision)
            return .object([
                "view": .string("collection-views/1"), "number": .integer(1), "shown": revision, "revision": revision,
            ])
        case "commit(_:from:)", "commit(_:from:as:)":
            guard case .array(let mutations) = arguments[0] else { return nil }
            return .array(mutations.map { commit($0, &contents) })
        default: return nil
        }
    }

    private func session(of link: Link) -> String { "member-\(ObjectIdentifier(link).hashValue)" }

    private func member(_ id: String, _ user: String?, _ presence: JSONValue) -> JSONObject {
        var member: JSONObject = ["id": .string(id), "data": presence]
        member["principal"] = user.map { .string($0) }
        return member
    }

    private func change(_ member: String, _ name: String, _ value: JSONValue, _ contents: inout Contents) {
        guard case .object(var data)? = contents.members[member]?["data"] else { return }
        data[name] = value == .null ? nil : value
        contents.members[member]?["data"] = .object(data)
    }

    /// Creates the document of a mutation; the only command of the chat.
    private func commit(_ mutation: JSONValue, _ contents: inout Contents) -> JSONValue {
        guard case .object(let mutation) = mutation, case .object(let command)? = mutation["command"],
            case .object(let create)? = command["create"], let number = mutation["number"]
        else { return .null }
        contents.revision += 1
        let revision = JSONValue.integer(contents.revision)
        contents.documents.append([
            "id": create["id"] ?? .null, "fields": create["fields"] ?? .null, "created": revision, "revision": revision,
            "createdAt": .integer(1), "updatedAt": .integer(1),
        ])
        send(result(contents), to: "observeResult", &contents)
        return .object(["number": number, "revision": revision, "shown": .object(["1": revision])])
    }

    // MARK: Streams

    private func observe(
        _ target: String, _ payload: JSONObject, _ call: JSONValue, _ link: Link, _ contents: inout Contents
    ) {
        contents.streams += 1
        let stream = "s\(contents.streams)"
        var start: JSONObject = [
            "streamID": .string(stream), "callID": call, "targetIdentifier": .string(target), "epoch": .string("1"),
        ]
        start["actorID"] = payload["actorID"]
        if target == "observeEvents" { start["sequenceNumber"] = .integer(0) }
        link.deliver("streamStart", start)
        contents.observations[target, default: []].append(Observation(link: link, stream: stream))
        if target == "observeRoster" { sendRoster(&contents) }
        if target == "observeResult" { send(result(contents), to: target, &contents) }
    }

    private func result(_ contents: Contents) -> JSONValue {
        .object([
            "revision": .integer(contents.revision), "hasMore": .bool(false),
            "documents": .array(contents.documents.map { .object($0) }),
        ])
    }

    private func sendRoster(_ contents: inout Contents) {
        let members = contents.members.sorted { $0.key < $1.key }.enumerated().map { number, member in
            (key: String(number + 1), value: JSONValue.object(member.value))
        }
        send(.object(["members": .object(JSONObject(members))]), to: "observeRoster", &contents)
    }

    private func send(_ value: JSONValue, to target: String, _ contents: inout Contents) {
        for index in contents.observations[target, default: []].indices {
            contents.observations[target]?[index].sequence += 1
            guard let observation = contents.observations[target]?[index] else { continue }
            observation.link.deliver(
                "streamData",
                [
                    "streamID": .string(observation.stream), "sequenceNumber": .integer(observation.sequence),
                    "timestamp": .string("2026-01-01T00:00:00.000Z"), "data": value,
                ])
        }
    }

    private func remove(_ link: Link) {
        contents.withLock { contents in
            contents.members[session(of: link)] = nil
            for target in Array(contents.observations.keys) {
                contents.observations[target]?.removeAll { $0.link === link }
            }
            sendRoster(&contents)
        }
    }
}
