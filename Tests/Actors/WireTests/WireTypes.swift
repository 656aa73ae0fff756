import Foundation
import TrebuchetActors

// Types with `@Wire`, each with a counterpart without it that has the same members.

@Wire
struct WireLeg: Equatable {
    var from: String
    let to: String
    var kilometres: Double
    var stops: Int
    var seats: [Int?]
    var `default`: Bool
}

struct PlainLeg: Codable, Equatable {
    var from: String
    let to: String
    var kilometres: Double
    var stops: Int
    var seats: [Int?]
    var `default`: Bool
}

@Wire
enum WireMode: String, CaseIterable { case train, ferry, foot = "on foot" }

enum PlainMode: String, Codable, CaseIterable { case train, ferry, foot = "on foot" }

@Wire
enum WireClass: UInt8, CaseIterable { case first = 1, second }

enum PlainClass: UInt8, Codable, CaseIterable { case first = 1, second }

/// A type without generated code.
struct Extra: Codable, Equatable {
    var weights: [String: Double]
    var page: URL?
    var price: Decimal
}

typealias Remark = String?

@Wire
struct WireTrip: Equatable {
    /// Not decoded, as it has its value.
    let version = 3
    static let longest = 10
    private(set) var id: UUID
    var begun: Date
    var ended: Date?
    var legs: [WireLeg]
    var best: WireLeg?
    var mode: WireMode
    var modes: [WireMode]?
    var rank: WireClass?
    var remark: Remark
    var small: Int8, large: UInt64
    var half: Float
    var flags: [[Bool]]
    var extra: Extra
    var more: Extra?
    var named: [String: WireLeg]
    var data: Data
    var count = 0 { didSet { changes += 1 } }
    var changes = 0
    var isLong: Bool { legs.count > Self.longest }
}

struct PlainTrip: Codable, Equatable {
    var version = 3
    var id: UUID
    var begun: Date
    var ended: Date?
    var legs: [PlainLeg]
    var best: PlainLeg?
    var mode: PlainMode
    var modes: [PlainMode]?
    var rank: PlainClass?
    var remark: Remark
    var small: Int8, large: UInt64
    var half: Float
    var flags: [[Bool]]
    var extra: Extra
    var more: Extra?
    var named: [String: PlainLeg]
    var data: Data
    var count = 0
    var changes = 0

    enum CodingKeys: CodingKey {
        case version, id, begun, ended, legs, best, mode, modes, rank, remark, small, large, half, flags, extra, more,
            named,
            data, count, changes
    }

    // The compiler's decoder, without a version.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(UUID.self, forKey: .id)
        begun = try container.decode(Date.self, forKey: .begun)
        ended = try container.decodeIfPresent(Date.self, forKey: .ended)
        legs = try container.decode([PlainLeg].self, forKey: .legs)
        best = try container.decodeIfPresent(PlainLeg.self, forKey: .best)
        mode = try container.decode(PlainMode.self, forKey: .mode)
        modes = try container.decodeIfPresent([PlainMode].self, forKey: .modes)
        rank = try container.decodeIfPresent(PlainClass.self, forKey: .rank)
        remark = try container.decodeIfPresent(String.self, forKey: .remark)
        small = try container.decode(Int8.self, forKey: .small)
        large = try container.decode(UInt64.self, forKey: .large)
        half = try container.decode(Float.self, forKey: .half)
        flags = try container.decode([[Bool]].self, forKey: .flags)
        extra = try container.decode(Extra.self, forKey: .extra)
        more = try container.decodeIfPresent(Extra.self, forKey: .more)
        named = try container.decode([String: PlainLeg].self, forKey: .named)
        data = try container.decode(Data.self, forKey: .data)
        count = try container.decode(Int.self, forKey: .count)
        changes = try container.decode(Int.self, forKey: .changes)
    }

    init(_ draw: inout RandomValues) {
        id = UUID(uuidString: "0B5E9F4C-7C1B-4E0B-9C55-0D6E1F6A\(draw.below(9000) + 1000)")!
        begun = draw.date()
        ended = draw.maybe { $0.date() }
        legs = draw.list { PlainLeg(&$0) }
        best = draw.maybe { PlainLeg(&$0) }
        mode = draw.one(of: PlainMode.allCases)
        modes = draw.maybe { draw in draw.list { $0.one(of: PlainMode.allCases) } }
        rank = draw.maybe { $0.one(of: PlainClass.allCases) }
        remark = draw.maybe { $0.text() }
        small = Int8(draw.below(256) - 128)
        large = draw.bits()
        half = Float(draw.below(1 << 24)) / Float(1 << draw.below(20))
        flags = draw.list { draw in draw.list { $0.below(2) == 0 } }
        extra = Extra(&draw)
        more = draw.maybe { Extra(&$0) }
        // One name at most, as the order of several is random.
        named = draw.maybe { [$0.text(): PlainLeg(&$0)] } ?? [:]
        data = Data(draw.list { UInt8($0.below(256)) })
        count = Int(truncatingIfNeeded: draw.bits())
        changes = draw.below(3)
    }
}

extension PlainLeg {
    init(_ draw: inout RandomValues) {
        self.init(
            from: draw.text(), to: draw.text(), kilometres: draw.double(), stops: draw.below(2_000) - 1_000,
            seats: draw.list { draw in draw.maybe { $0.below(100) } }, default: draw.below(2) == 0)
    }
}

extension Extra {
    init(_ draw: inout RandomValues) {
        self.init(
            weights: draw.maybe { [$0.text(): $0.double()] } ?? [:],
            page: draw.maybe { _ in URL(string: "https://a.example/b")! },
            price: Decimal(draw.below(1_000_000)) / 100)
    }
}

/// Nests to any depth.
@Wire
struct WireTree: Equatable {
    var name: String
    var children: [WireTree]
}

struct PlainTree: Codable, Equatable {
    var name: String
    var children: [PlainTree]
}

@Wire
struct WireNothing: Equatable {}

@Wire
struct WireOnlyMaybe: Equatable {
    var a: Int?
    var b: String?
}
