internal import Platform
internal import Synchronization

/// Names a connection for longer than it lasts, so that a call can say over which one it was sent first.
struct ConnectionName: Hashable {
    /// Unique within the server; later ones are greater. It also tells the reactor.
    let number: UInt64
    /// Who does not have it cannot speak of the connection. Made of the number with a key, so that one that was made up is
    /// told from one that was given.
    let secret: UInt64
}

/// Gives connections their names, and reads them in messages.
final class ConnectionNames: Sendable {
    /// Of this server, since it was made: another one, or the same program started again, has another.
    let instance = UInt64.random(in: 1 ... .max)
    private let reactors: UInt64
    private let count = Atomic<UInt64>(0)
    /// Of this server alone, and nowhere but here.
    private let key = (0..<32).map { _ in UInt8.random(in: 0 ... .max) }
    /// Of connections of other nodes.
    let carried = CarriedNames()

    init(reactors: Int) { self.reactors = UInt64(reactors) }

    func next(onReactor index: Int) -> ConnectionName {
        let count = count.wrappingAdd(1, ordering: .relaxed).newValue
        let number = count * reactors + UInt64(index)
        return ConnectionName(number: number, secret: secret(number))
    }

    private func secret(_ number: UInt64) -> UInt64 {
        let bytes = withUnsafeBytes(of: number.littleEndian) { Array($0) }
        return Digest.hmacSHA256(bytes, key: key).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
    }

    /// The index of the reactor that the connection lives, or has lived, on.
    func reactor(of name: ConnectionName) -> Int { Int(name.number % reactors) }

    /// Characters of a name, as it stands in messages.
    static let longest = 41

    /// As it stands in messages: at most `longest` characters.
    func text(_ name: ConnectionName) -> String {
        [instance, name.number, name.secret].map { String($0, radix: 36) }.joined(separator: ".")
    }

    /// Nil when it is not a name that this server has given.
    ///
    /// - Parameter own: that of the connection that it came over, which is nearly always meant and needs no check.
    func name(_ text: String, own: ConnectionName? = nil) -> ConnectionName? {
        guard let session = SessionName(text), session.instance == instance else { return nil }
        let (number, secret) = (session.number, session.secret)
        let name = ConnectionName(number: number, secret: secret)
        if name == own { return name }
        guard number / reactors <= count.load(ordering: .relaxed) else { return nil }
        return self.secret(number) == secret ? name : nil
    }

    /// That of a connection of another node's, by what it is called there; the same one again while somebody has it.
    func carry(_ text: String, onReactor index: Int) -> CarriedName {
        carried.carry(text) { next(onReactor: index) }
    }
}

/// The name of any server's connection, as it stands in messages.
struct SessionName: Hashable {
    let instance: UInt64
    let number: UInt64
    /// Known to its own server alone whether it is right.
    let secret: UInt64

    init(instance: UInt64, number: UInt64, secret: UInt64) {
        (self.instance, self.number, self.secret) = (instance, number, secret)
    }

    /// Nil for what no server gives.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { UInt64($0, radix: 36) }
        guard parts.count == 3, let instance = parts[0], let number = parts[1], let secret = parts[2] else {
            return nil
        }
        self.init(instance: instance, number: number, secret: secret)
    }
}
