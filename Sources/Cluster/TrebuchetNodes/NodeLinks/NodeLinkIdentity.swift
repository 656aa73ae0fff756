internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetCluster

/// The certificates of a node's links: from files, or issued by the authority that the coordination store keeps.
///
/// A cluster without files has an authority nevertheless. The first node stores its certificate and key in a table, if there is
/// none; each node issues a certificate to itself, in memory. Access to the coordination store is full control of a cluster, so
/// the authority is as safe there as anything else. Its certificates do not expire: the authority ends with the data of the
/// coordination store, and a node's key with the process.
final class NodeLinkIdentity: Sendable {
    private static let table = ClusterTable("node links")
    private static let entry = "authority"
    /// The maximum number of attempts to read or store the authority; the second finds it, unless it is removed meanwhile.
    private static let maximumAttempts = 4

    /// The TLS contexts, and the authority that issued the certificate; nil for files.
    private struct State {
        var tls: NodeTLS
        var authority: [UInt8]?
        /// True after a failure of a link that another authority would explain.
        var isInDoubt = false
    }

    private let node: ClusterNode
    private let engine: any ClusterEngine
    private let files: NodeCertificateFiles?
    private let state: Mutex<State>

    /// Reads the files. Throws `TransportError` of code `.tls`, also for the certificate of another node.
    init(of node: ClusterNode, _ files: NodeCertificateFiles, at engine: any ClusterEngine) throws(TransportError) {
        (self.node, self.engine, self.files) = (node, engine, files)
        state = Mutex(State(tls: try Self.read(files, for: node)))
    }

    /// Issues a certificate to the node.
    ///
    /// - Parameter authority: the authority in the coordination store.
    init(of node: ClusterNode, authority: [UInt8], at engine: any ClusterEngine) throws(TransportError) {
        (self.node, self.engine, files) = (node, engine, nil)
        state = Mutex(State(tls: try Self.issue(to: node, by: authority), authority: authority))
    }

    /// The contexts for new links.
    var tls: NodeTLS { state.withLock { $0.tls } }

    /// Reads the files again, for new links. If they are invalid, it throws and keeps the current certificates. Does nothing
    /// without files.
    func reload() throws(TransportError) {
        guard let files else { return }
        let fresh = try Self.read(files, for: node)
        state.withLock { $0.tls = fresh }
    }

    /// Called when a peer's certificate was rejected, or that of this node by a peer.
    func didFail() { state.withLock { $0.isInDoubt = true } }

    /// After a failure, reads the authority from the coordination store again: a store that was emptied has another one.
    func refresh() async {
        let known: [UInt8]? = state.withLock { state in
            defer { state.isInDoubt = false }
            return state.isInDoubt ? state.authority : nil
        }
        // After an error of the store the next failure of a link leads here again.
        guard let known, let authority = try? await Self.authority(at: engine), authority != known,
            let fresh = try? Self.issue(to: node, by: authority)
        else { return }
        state.withLock { state in (state.tls, state.authority) = (fresh, authority) }
    }

    // MARK: Files

    private static func read(_ files: NodeCertificateFiles, for node: ClusterNode) throws(TransportError) -> NodeTLS {
        let tls = try NodeTLS(
            certificateChainFile: files.certificateChainFile, privateKeyFile: files.privateKeyFile,
            authorityFile: files.authorityFile)
        guard tls.name.node == node.name else {
            throw TransportError(
                .tls,
                "certificate file '\(files.certificateChainFile)' is that of node '\(tls.name.node)', and this node is "
                    + "'\(node.name)'")
        }
        return tls
    }

    // MARK: The authority in the coordination store

    private static func issue(to node: ClusterNode, by authority: [UInt8]) throws(TransportError) -> NodeTLS {
        let authority = try CertifiedKey(certificate: authority, key: authority)
        return try NodeTLS(authority.issue(to: node.name, validFor: nil), authority: authority)
    }

    /// Returns the certificate and key of the authority, in PEM format; stores a new one if there is none.
    static func authority(at engine: any ClusterEngine) async throws(ClusterEngineError) -> [UInt8] {
        for _ in 0..<maximumAttempts {
            if let known = try await engine.values([entry], of: table).first, let known { return known.bytes }
            let made: CertifiedKey
            do throws(TransportError) {
                made = try CertifiedKey.makeAuthority(validFor: nil)
            } catch {
                throw ClusterEngineError(.invalid, error.message)
            }
            // Another node may be first; the next reading finds its authority.
            _ = try await engine.apply(
                TableChange(
                    [.init(entry, .put(made.certificateText + made.keyText))],
                    preconditions: [.init(entry, version: 0)]),
                to: table)
        }
        throw ClusterEngineError(.unavailable, "the certificate authority for node links cannot be stored")
    }
}

/// Decides when the expiry of a node's certificate is logged: once a day, beginning 30 days before.
struct CertificateExpiryLog {
    private static let notice = Duration.seconds(30 * 86_400)
    private static let interval: UInt64 = 86_400_000_000_000

    private var next: UInt64 = 0

    /// Returns the line that is due.
    ///
    /// - Parameters:
    ///   - remaining: the time until the certificate expires.
    ///   - now: monotonic time in nanoseconds.
    mutating func line(remaining: Duration, at now: UInt64) -> NodeLog.Line? {
        guard remaining < Self.notice else {
            // A reloaded certificate.
            next = 0
            return nil
        }
        guard now >= next else { return nil }
        next = now &+ Self.interval
        let remedy = "replace the files, such as by 'trebuchet cluster init', and send SIGHUP"
        guard remaining > .zero else {
            return NodeLog.Line(
                .error,
                "the certificate of this node has expired: new messages of other nodes go through the coordination store; "
                    + remedy)
        }
        let days = remaining.components.seconds / 86_400
        return NodeLog.Line(.warning, "the certificate of this node expires in \(Int(days).counted("day")); \(remedy)")
    }
}
