internal import Distributed
internal import Synchronization
internal import TrebuchetWire

/// The errors that a client can make again from what the server sends: by the name of their type.
package final class ErrorTypes: Sendable {
    /// `client.register`
    private let registration: String
    private let registered = Mutex<[String: any (Error & Decodable).Type]>([:])

    package init(registration: String = "client.register") { self.registration = registration }

    package func register(_ type: any (Error & Decodable).Type) {
        registered.withLock { $0[String(reflecting: type)] = type }
    }

    /// The error as the actor threw it, if its type is known here; otherwise `error` itself.
    package func typed<Act: DistributedActor>(_ error: TrebuchetError, thrownBy actor: Act.Type) -> any Error {
        guard let name = error.type, let data = error.data else { return error }
        guard let type = registered.withLock({ $0[name] }) ?? declared(name, by: actor) else {
            let hint = "\(registration)(errors: \(name).self) makes it arrive as itself"
            return TrebuchetError(error.code, "\(error.message) (\(hint))", type: name, data: data)
        }
        return decode(type, data) ?? error
    }

    /// Errors named by `throws(…)` in a method of the actor are known without being registered.
    private func declared(_ name: String, by actor: any DistributedActor.Type) -> (any (Error & Decodable).Type)? {
        guard let actor = actor as? any TrebuchetActor.Type else { return nil }
        for type in actor.declaredErrors {
            guard let type = type as? any (Error & Decodable).Type else { continue }
            register(type)
            if String(reflecting: type) == name { return type }
        }
        return nil
    }

    private func decode<E: Error & Decodable>(_ type: E.Type, _ data: [UInt8]) -> E? {
        try? data.withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
    }
}

extension TrebuchetActor {
    fileprivate static var declaredErrors: [any Error.Type] { dispatch.methods.compactMap(\.errorType) }
}
