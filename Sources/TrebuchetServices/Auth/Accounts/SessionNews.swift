#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// What a change of accounts tells all nodes: whose connections lose their rights, and who others are from now on.
struct SessionNews: Codable, Equatable, Sendable {
    struct End: Codable, Equatable, Sendable {
        let session: String
        let why: SessionEnd
    }

    struct Change: Codable, Equatable, Sendable {
        let user: User
        let sessions: [String]
    }

    var ended: [End] = []
    var changed: [Change] = []
    /// Which node has made the change.
    var teller = ""
    /// Milliseconds since 1970, by its clock.
    var at: Int64 = 0

    var isEmpty: Bool { ended.isEmpty && changed.isEmpty }

    var bytes: [UInt8]? { (try? JSONEncoder().encode(self)).map { Array($0) } }

    init() {}

    init?(bytes: [UInt8]) {
        guard let news = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        self = news
    }
}
