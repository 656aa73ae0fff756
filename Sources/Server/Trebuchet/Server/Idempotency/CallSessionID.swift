internal import Platform
internal import Synchronization

/// The name of a connection, valid beyond its lifetime, with which a repeat refers to its first connection.
package struct CallSessionID: Hashable {
    /// Unique within the server; later ones are greater. It also identifies the reactor.
    package let number: UInt64
    /// Authenticates the name: without it no client can refer to the connection. It is computed from the number with a key, so that
    /// invented names are recognized.
    let secret: UInt64
}

/// Creates the names of connections, and parses them in messages.
package final class CallSessionRegistry: Sendable {
    /// Identifies this server process: each server and each restart has another value.
    let instance = UInt64.random(in: 1 ... .max)
    private let reactors: UInt64
    private let count = Atomic<UInt64>(0)
    /// The secret key of this server process, which never leaves it.
    private let key = (0..<32).map { _ in UInt8.random(in: 0 ... .max) }
    /// The names of connections of other servers.
    let carried = RemoteSessionAliasTable()

    init(reactors: Int) { self.reactors = UInt64(reactors) }

    func next(onReactor index: Int) -> CallSessionID {
        let count = count.wrappingAdd(1, ordering: .relaxed).newValue
        let number = count * reactors + UInt64(index)
        return CallSessionID(number: number, secret: secret(number))
    }

    private func secret(_ number: UInt64) -> UInt64 {
        let bytes = withUnsafeBytes(of: number.littleEndian) { Array($0) }
        return Digest.hmacSHA256(bytes, key: key).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
    }

    /// Returns the index of the reactor that the connection lives, or has lived, on.
    package func reactor(of name: CallSessionID) -> Int { Int(name.number % reactors) }

    /// The maximum number of characters of a name in messages.
    static let longest = 41

    /// Returns the form in messages: at most `longest` characters.
    func text(_ name: CallSessionID) -> String {
        [instance, name.number, name.secret].map { String($0, radix: 36) }.joined(separator: ".")
    }

    /// Returns the parsed name; nil for a name that this server has not created.
    ///
    /// - Parameter own: The name of the connection that the message arrived over: the usual value, which needs no check.
    func name(_ text: String, own: CallSessionID? = nil) -> CallSessionID? {
        guard let session = QualifiedCallSessionID(text), session.instance == instance else { return nil }
        let (number, secret) = (session.number, session.secret)
        let name = CallSessionID(number: number, secret: secret)
        if name == own { return name }
        guard number / reactors <= count.load(ordering: .relaxed) else { return nil }
        return self.secret(number) == secret ? name : nil
    }

    /// Returns the local name of another server's connection, the same one while it is in use.
    ///
    /// - Parameter isVerified: whether the name arrives from its own server, and not from a client only.
    package func carry(_ text: String, onReactor index: Int, isVerified: Bool) -> RemoteSessionAlias {
        carried.carry(text, isVerified: isVerified) { next(onReactor: index) }
    }
}

/// The name of a connection of any server, as in messages.
struct QualifiedCallSessionID: Hashable {
    let instance: UInt64
    let number: UInt64
    /// Only its own server can verify it.
    let secret: UInt64

    init(instance: UInt64, number: UInt64, secret: UInt64) {
        (self.instance, self.number, self.secret) = (instance, number, secret)
    }

    /// Parses a name; nil for a text that no server creates.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { UInt64($0, radix: 36) }
        guard parts.count == 3, let instance = parts[0], let number = parts[1], let secret = parts[2] else {
            return nil
        }
        self.init(instance: instance, number: number, secret: secret)
    }
}
