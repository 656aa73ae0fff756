import Platform
import TrebuchetCluster

/// Operations of nodes on one table, with the expected outcomes as text. Texts denote their bytes.
enum TableStep: Sendable {
    /// `changed 3`, `conflict a`, `full`.
    case change([TableChange.Write], expecting: [String: UInt64] = [:], news: String? = nil, String)
    /// `a=1@3 b=-`: each name with its value and version, or `-` without one.
    case values([String], String)
    /// `a=1@3 b=2@4`, and ` … a` when more rows follow a.
    case rows(String, after: String? = nil, limit: Int = 100, String)
    /// `3=told top 4`, ` cut 2` when some were dropped, and ` …` when there are more.
    case news(UInt64?, limit: Int = 100, String)
    /// The values of these names that were put for a short time expire.
    case pass([String])

    /// The expected outcome.
    var expected: String {
        switch self {
        case .change(_, _, _, let expected), .values(_, let expected), .rows(_, _, _, let expected),
            .news(_, _, let expected):
            expected
        case .pass: ""
        }
    }
}

extension TableChange.Write {
    static func put(_ name: String, _ text: String) -> Self { Self(name, .put(Array(text.utf8))) }
    static func putExpiring(_ name: String, _ text: String, _ lifetime: Duration = EngineRig.long) -> Self {
        Self(name, .putExpiring(Array(text.utf8), lifetime: lifetime))
    }
    static func add(_ name: String, _ number: Int64) -> Self { Self(name, .increment(number)) }
    static func delete(_ name: String) -> Self { Self(name, .delete) }
}

extension EngineRig {
    /// Runs a step on a table; nil for a step without an outcome.
    func play(_ step: TableStep, on table: ClusterTable) async throws -> String? {
        switch step {
        case .change(let writes, let expecting, let news, _):
            let change = TableChange(
                writes, preconditions: expecting.sorted { $0.key < $1.key }.map { .init($0.key, version: $0.value) },
                notice: news.map { Array($0.utf8) })
            switch try await one.apply(change, to: table) {
            case .changed(let number): return "changed \(number)"
            case .conflict(let name): return "conflict \(name)"
            case .full: return "full"
            }
        case .values(let names, _):
            let values = try await other.values(names, of: table)
            return zip(names, values).map { "\($0)=\($1.map(Self.words) ?? "-")" }.joined(separator: " ")
        case .rows(let prefix, let after, let limit, _):
            let page = try await other.rows(of: table, prefix: prefix, after: after, limit: limit)
            return page.rows.map { "\($0.name)=\(Self.words($0.value))" }.joined(separator: " ")
                + (page.next.map { " … \($0)" } ?? "")
        case .news(let number, let limit, _):
            let news = try await other.changeFeed(of: table, after: number, limit: limit)
            let items = news.items.map { "\($0.number)=\(String(decoding: $0.bytes, as: UTF8.self)) " }
            return items.joined() + "top \(news.head)"
                + (news.truncatedThrough > 0 ? " cut \(news.truncatedThrough)" : "")
                + (news.isComplete ? "" : " …")
        case .pass(let names):
            try await waitForExpiry(names, of: table)
            return nil
        }
    }

    private static func words(_ value: TableValue) -> String {
        "\(String(decoding: value.bytes, as: UTF8.self))@\(value.version)"
    }
}

/// Random steps from a seed, most of them with an effect.
struct RandomTableScenario {
    private static let names = ["a", "a/1", "a/2", "b", "é", "e\u{301}", "ÿ", "\u{10FFFF}"]

    private var random: RandomSource
    private var top: UInt64 = 0

    init(seed: UInt64) { random = RandomSource(seed: seed) }

    mutating func note(_ outcome: String?) {
        guard let outcome, outcome.hasPrefix("changed ") else { return }
        top = UInt64(outcome.dropFirst(8)) ?? top
    }

    private mutating func name() -> String { Self.names.randomElement(using: &random)! }

    mutating func next() -> TableStep {
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1: return .values((0..<3).map { _ in name() }, "")
        case 2, 3:
            let after = Bool.random(using: &random) ? name() : nil
            return .rows(
                ["", "a", "a/", "é"].randomElement(using: &random)!, after: after,
                limit: .random(in: 1...6, using: &random), "")
        case 4:
            let number = Bool.random(using: &random) ? UInt64.random(in: 0...(top + 2), using: &random) : nil
            return .news(number, limit: .random(in: 1...6, using: &random), "")
        default:
            let writes = (0..<Int.random(in: 1...3, using: &random)).map { _ -> TableChange.Write in
                let name = name()
                switch Int.random(in: 0..<6, using: &random) {
                case 0: return .delete(name)
                case 1: return .add(name, .random(in: -5...1_000_000_000_000, using: &random))
                case 2: return .putExpiring(name, "l\(top)")
                default: return .put(name, String(repeating: ":", count: Int(top % 5)) + "\(top)\u{0}")
                }
            }
            var expecting: [String: UInt64] = [:]
            if Int.random(in: 0..<4, using: &random) == 0 {
                expecting[name()] = Bool.random(using: &random) ? 0 : UInt64.random(in: 0...top, using: &random)
            }
            let news = Int.random(in: 0..<3, using: &random) == 0 ? "n\(top)" : nil
            return .change(writes, expecting: expecting, news: news, "")
        }
    }
}
