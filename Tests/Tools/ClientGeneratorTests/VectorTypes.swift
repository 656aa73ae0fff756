import Foundation
import SharedState
import Trebuchet

// Types of every kind that a client may meet. The generator reads this file, and the tests encode values of them.

/// A value of each row, under the name of the method that receives and returns it.
@Trebuchet
distributed actor Vectors {
    distributed func text(_ value: String) -> String { value }
    distributed func flag(_ value: Bool) -> Bool { value }
    distributed func whole(_ value: Int) -> Int { value }
    distributed func byte(_ value: UInt8) -> UInt8 { value }
    distributed func double(_ value: Double) -> Double { value }
    // trebuchet: bigint
    distributed func wide(_ value: Int64) -> Int64 { value }
    // trebuchet: bigint
    distributed func unsigned(_ value: [UInt64]) -> [UInt64] { value }
    distributed func decimal(_ value: Decimal) -> Decimal { value }
    distributed func date(_ value: Date) -> Date { value }
    distributed func dates(_ value: [Date?]) -> [Date?] { value }
    distributed func data(_ value: Data) -> Data { value }
    distributed func uuid(_ value: UUID) -> UUID { value }
    distributed func url(_ value: URL) -> URL { value }
    distributed func maybe(_ value: Int?) -> Int? { value }
    distributed func maybeDate(_ value: Date?) -> Date? { value }
    distributed func nested(_ value: [Int??]) -> [Int??] { value }
    distributed func list(_ value: [String]) -> [String] { value }
    distributed func only(_ value: Set<Int>) -> Set<Int> { value }
    distributed func range(_ value: Range<Int>) -> Range<Int> { value }
    distributed func span(_ value: ClosedRange<Date>) -> ClosedRange<Date> { value }
    distributed func byName(_ value: [String: Date]) -> [String: Date] { value }
    distributed func byNumber(_ value: [Int: String]) -> [Int: String] { value }
    distributed func byColour(_ value: [Colour: Date]) -> [Colour: Date] { value }
    distributed func bySize(_ value: [Size: Date]) -> [Size: Date] { value }
    distributed func byID(_ value: [UUID: Int]) -> [UUID: Int] { value }
    distributed func byByte(_ value: [UInt8: Date]) -> [UInt8: Date] { value }
    distributed func colour(_ value: Colour) -> Colour { value }
    distributed func tolerant(_ value: [Tolerant<Colour>]) -> [Tolerant<Colour>] { value }
    distributed func level(_ value: Level) -> Level { value }
    distributed func ratio(_ value: Ratio) -> Ratio { value }
    distributed func choice(_ value: [Choice]) -> [Choice] { value }
    distributed func plain(_ value: [Plain]) -> [Plain] { value }
    distributed func renamed(_ value: [Renamed]) -> [Renamed] { value }
    distributed func account(_ value: AccountID) -> AccountID { value }
    distributed func rights(_ value: Rights) -> Rights { value }
    distributed func moment(_ value: Moment) -> Moment { value }
    distributed func event(_ value: Event) -> Event { value }
    distributed func sparse(_ value: [Sparse]) -> [Sparse] { value }
    distributed func keys(_ value: Keys) -> Keys { value }
    distributed func page(_ value: Page<Event>) -> Page<Event> { value }
    distributed func optionalPage(_ value: Page<Date?>) -> Page<Date?> { value }
    distributed func box(_ value: Box<Date>.Inner) -> Box<Date>.Inner { value }
    distributed func tree(_ value: Tree) -> Tree { value }
    distributed func formula(_ value: Formula) -> Formula { value }
    distributed func record(_ value: Record) -> Record { value }
    distributed func keyed(_ value: KeyedCollection<Item>) -> KeyedCollection<Item> { value }
    distributed func identified(_ value: IdentifiedArrayOf<Item>) -> IdentifiedArrayOf<Item> { value }
    distributed func node(_ value: Node) -> Node { value }
    distributed func unusual(_ value: Unusual) -> Unusual { value }
    distributed func empty(_ value: Empty) -> Empty { value }
    distributed func own(_ value: Fahrenheit) -> Fahrenheit { value }
    distributed func ids(_ value: Item.ID) -> Item.ID { value }
}

/// A raw value given, and one implied.
enum Colour: String, Codable { case red, green = "grün", `default` }

/// Whole numbers, given and implied.
enum Level: Int, Codable { case low = -1, middle, high = 10, higher }

enum Ratio: Double, Codable {
    case half = 0.5
    case whole = 1
}

/// Object keys, unlike those of ``Colour``.
enum Size: String, Codable, CodingKeyRepresentable { case small, large }

/// Payloads with and without labels, renamed, omitted when nil, and absent.
enum Choice: Codable, Equatable {
    case load(key: String, at: Date)
    case point(Int, Int)
    case mixed(Date, note: String?)
    case moved(to: Int?)
    case optional(Date?)
    case none

    enum CodingKeys: CodingKey {
        case load, point, mixed, moved, optional, none
    }
    enum MovedCodingKeys: String, CodingKey { case to = "target" }
}

enum Plain: Codable { case on, off }

struct Renamed: Codable {
    var isDone: Bool
    var when: Date?
    /// Is not written.
    var secret = 7
    private var hidden = "h"

    init(isDone: Bool, when: Date?) { (self.isDone, self.when) = (isDone, when) }

    private enum CodingKeys: String, CodingKey {
        case isDone = "is_done"
        case when = "at-what time"
        case hidden
    }
}

struct AccountID: RawRepresentable, Codable, Hashable { let rawValue: String }

struct Rights: OptionSet, Codable {
    let rawValue: Int
    static let read = Rights(rawValue: 1)
}

/// Only numbers, texts and booleans are encoded as bare raw values.
struct Moment: RawRepresentable, Codable { var rawValue: Date }

struct Event: Codable {
    let name: String
    let at: Date
    var note: String? = nil
}

/// Nil optionals of a struct are omitted; a nil in two optionals may be null.
struct Sparse: Codable {
    var a: Int?
    var b: Date?
    var c: Int??
    var d: [Date?]?
    var e: Swift.Optional<String>
}

struct Keys: Codable {
    var texts: [String: Int]
    var pairs: [Colour: Date]
    var accounts: [AccountID: Data]
}

struct Page<Item: Codable & Sendable>: Codable, Sendable {
    var items: [Item]
    var next: Item
    var cursor: String?
}

struct Box<Value: Codable & Sendable> {
    struct Inner: Codable, Sendable {
        var value: Value
        var others: [String: Value]
    }
}

struct Tree: Codable {
    var at: Date
    var children: [Tree]
}

indirect enum Formula: Codable, Sendable {
    case value(Decimal)
    case sum(Formula, Formula)
}

struct Record: DeltaRecord {
    @DeltaValue var name = ""
    @DeltaValue var until: Date? = nil
    var items = KeyedCollection<Item>()

    static let deltaMembers: [DeltaMember<Record>] = [
        DeltaMember("name", \._name), DeltaMember("until", \._until), DeltaMember("items", \.items),
    ]
}

struct Item: Codable, Sendable, Identifiable, Equatable {
    let id: UUID
    var at: Date
}

final class Node: Codable, Sendable {
    let name: String
    let next: Node?

    init(_ name: String, _ next: Node?) { (self.name, self.next) = (name, next) }
}

/// Names that are invalid in other languages.
struct Unusual: Codable {
    var `class`: Int
    var __proto__: Date
    var constructor: Date
    var naïve: String
    var 🐶: Date
    var `in`: [Date]
}

struct Empty: Codable {}

// trebuchet: TypeScript = { degrees: number }
struct Fahrenheit: Codable {
    var celsius: Double

    init(celsius: Double) { self.celsius = celsius }
    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        celsius = (try members.decode(Double.self, forKey: .degrees) - 32) / 1.8
    }
    func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(celsius * 1.8 + 32, forKey: .degrees)
    }

    private enum CodingKeys: CodingKey { case degrees }
}
