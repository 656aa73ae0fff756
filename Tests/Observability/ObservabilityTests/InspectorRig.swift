import Foundation
import TestSupport
import Testing
import Transports
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetInspector

/// An inspector and access to it.
struct InspectorRig {
    let inspector: TrebuchetServer.Inspector

    var address: SocketAddress { inspector.address }

    /// The whole response, with its head. A request whose connection ended without a response is repeated: the server closes a
    /// connection that has waited for its time limit, as on a machine whose cores other tests use.
    func answer(_ path: String, _ fields: String..., host: String = "localhost") async throws -> String {
        let fields = ["Authorization: Bearer \(inspector.token)"] + fields
        var answer = ""
        for _ in 0..<5 where answer.isEmpty { answer = try await RawPeer.get(path, at: address, fields, host: host) }
        return answer
    }

    static func status(_ answer: String) -> String { String(answer.dropFirst("HTTP/1.1 ".count).prefix(3)) }
    static func body(_ answer: String) -> String {
        answer.firstRange(of: "\r\n\r\n").map { String(answer[$0.upperBound...]) } ?? ""
    }

    func json(_ path: String) async throws -> InspectedValue {
        let answer = try await answer(path)
        #expect(Self.status(answer) == "200", "\(path): \(answer.prefix(400))")
        return InspectedValue(value: try JSONSerialization.jsonObject(with: Data(Self.body(answer).utf8)))
    }

    /// Requests the actor until it has responded: from then on its versions are recorded, also on a busy machine.
    func follow(_ name: String) async throws {
        let isFollowed = try await eventually {
            try await json("/inspect/actors/\(name)")["states"].list.allSatisfy { $0["problem"].text == nil }
        }
        #expect(isFollowed)
    }

    /// Runs `body` with a server with an actor `shelf`, a client and an inspector.
    static func with(
        reactors: Int = 2, store: (any StateStore)? = nil, clock: TestTime? = nil,
        writes: Bool = false,
        prepare: (TrebuchetServer) async throws -> Void = { _ in },
        _ body: (TrebuchetClient, TrebuchetServer, InspectorRig) async throws -> Void
    ) async throws {
        // Callers are identified, and can sign in.
        var access = AccessPolicy.open
        access.identifiesCallers = true
        try await withTestServer(
            reactors: clock == nil ? reactors : nil, access: access, store: store, clock: clock
        ) { server in
            await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
            try await prepare(server)
        } body: { client, server async throws in
            try await body(client, server, InspectorRig(inspector: try server.openInspector(writes: writes)))
        }
    }
}

/// A part of a response.
struct InspectedValue {
    let value: Any?

    init(value: Any?) { self.value = value }

    /// The value as it would be sent.
    init(_ json: InspectorJSON) throws {
        value = try JSONSerialization.jsonObject(with: Data(json.bytes))
    }

    subscript(name: String) -> InspectedValue { InspectedValue(value: (value as? [String: Any])?[name]) }

    var list: [InspectedValue] { (value as? [Any])?.map { InspectedValue(value: $0) } ?? [] }
    var text: String? { value as? String }
    var texts: [String] { list.compactMap(\.text) }
    var count: Int? { (value as? NSNumber)?.intValue }
    var flag: Bool? { value as? Bool }
}
