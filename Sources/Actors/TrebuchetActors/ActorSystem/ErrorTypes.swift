internal import Distributed
internal import Synchronization
internal import TrebuchetWire

/// The error types that a client can decode, by type name.
package final class ErrorTypes: Sendable {
    /// The name of the registration method in hints, such as `client.register`.
    private let registration: String
    private let registered = Mutex<[String: any (Error & Decodable).Type]>([:])

    package init(registration: String = "client.register") { self.registration = registration }

    package func register(_ type: any (Error & Decodable).Type) {
        registered.withLock { $0[ErrorNames.name(of: type)] = type }
    }

    /// Returns the error as the actor threw it if its type is known here; otherwise `error` itself.
    package func typed<Act: DistributedActor>(_ error: TrebuchetError, thrownBy actor: Act.Type) -> any Error {
        guard let name = error.type, let data = error.data else { return error }
        guard let type = registered.withLock({ $0[name] }) ?? declared(name, by: actor) else {
            let hint = "\(registration)(errors: \(name).self) decodes it as its original type"
            return TrebuchetError(error.code, "\(error.message) (\(hint))", type: name, data: data)
        }
        return decode(type, data) ?? error
    }

    /// Returns an error type that a method of the actor declares with `throws(…)`. Such types need no registration.
    private func declared(_ name: String, by actor: any DistributedActor.Type) -> (any (Error & Decodable).Type)? {
        guard let actor = actor as? any TrebuchetActor.Type else { return nil }
        for type in actor.declaredErrors {
            guard let type = type as? any (Error & Decodable).Type else { continue }
            register(type)
            if ErrorNames.name(of: type) == name { return type }
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

/// An error whose type name on the wire does not depend on its module.
package protocol NamedError: Error {
    /// The type name on the wire, such as `Bank.AccountError`.
    static var wireName: String { get }
}

/// The type names of errors on the wire and in logs.
enum ErrorNames {
    /// Returns the fixed name of a type, else its qualified name in the program.
    static func name(of type: any Error.Type) -> String {
        (type as? any NamedError.Type)?.wireName ?? String(reflecting: type)
    }
}
