internal import Synchronization
internal import Trebuchet

/// The connections that use a service, each as the service sees it: made at its first call, and forgotten when it closes.
final class Visitors<Visitor: AnyObject & Sendable>: Sendable {
    private let known = Mutex<[CallerConnection: Visitor]>([:])

    /// Those of connections that are open.
    var all: [Visitor] { known.withLock { Array($0.values) } }

    /// For tests: closures that connections keep for their ends, here and elsewhere.
    var closeHandlerCount: Int { known.withLock { $0.keys.reduce(0) { $0 + $1.closeHandlerCount } } }

    /// The one of a connection.
    ///
    /// - Parameter principalChanged: called when somebody else is signed in over the connection, or with other roles.
    func visitor(
        _ connection: CallerConnection, make: () -> Visitor,
        principalChanged: @escaping @Sendable (Visitor) -> Void
    ) -> Visitor {
        let (visitor, isNew) = known.withLock { known in
            if let visitor = known[connection] { return (visitor, false) }
            let visitor = make()
            known[connection] = visitor
            return (visitor, true)
        }
        if isNew {
            connection.onClose { [weak self, weak connection] in self?.forget(connection) }
            connection.onPrincipalChange { [weak visitor] in if let visitor { principalChanged(visitor) } }
        }
        return visitor
    }

    private func forget(_ connection: CallerConnection?) {
        guard let connection else { return }
        let removed = known.withLock { $0.removeValue(forKey: connection) }
        _ = removed
    }
}

/// What nobody can guess: 128 random bits of the system, as 26 letters and digits.
enum Secret {
    static func make() -> String {
        var random = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(random.next() as UInt64, radix: 36)
            return String(repeating: "0", count: 13 - digits.count) + digits
        }.joined()
    }
}
