#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The notice of an account change to all nodes: ended sessions, and sessions with a changed user.
struct SessionChangeNotice: Codable, Equatable, Sendable {
    struct SessionTermination: Codable, Equatable, Sendable {
        let session: String
        let reason: SessionEndReason
    }

    struct Change: Codable, Equatable, Sendable {
        let user: User
        let sessions: [String]
    }

    var ended: [SessionTermination] = []
    var changed: [Change] = []
    /// The identifier of the node that made the change.
    var origin = ""
    /// Milliseconds since 1970, by the clock of that node.
    var at: Int64 = 0

    var isEmpty: Bool { ended.isEmpty && changed.isEmpty }

    var bytes: [UInt8]? { (try? JSONEncoder().encode(self)).map { Array($0) } }

    init() {}

    init?(bytes: [UInt8]) {
        guard let notice = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = notice
    }
}
