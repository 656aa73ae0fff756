internal import Trebuchet

/// The caller that has activated an actor, for its quotas and rates.
enum ActivationOwner: QuotaHost, Sendable {
    case host(CallerHost)
    /// A loopback connection.
    case connection(UInt64)

    /// The party of the current activation; nil for the server itself.
    static var current: ActivationOwner? {
        ActivationOrigin.current.map { origin in origin.host.map { .host($0) } ?? .connection(origin.connection) }
    }

    /// Nil for a loopback connection.
    var host: CallerHost? { if case .host(let host) = self { host } else { nil } }

    var network: ActivationOwner { if case .host(let host) = self { .host(host.network) } else { self } }
}
