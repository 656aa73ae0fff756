import Foundation
import Testing

@testable import TrebuchetWire

@Suite("Tolerant values") struct TolerantTests {
    enum Move: String, Codable { case left, right }

    enum Action: Codable, Equatable { case wait, go(to: Int) }

    struct Lot: Codable, Equatable {
        var id: Int
        var last: Tolerant<Move>
        var next: Tolerant<Action>?
        var at: Tolerant<Date>?
    }

    static let rows: [(String, Tolerant<Move>?)] = [
        (#""left""#, .known(.left)), (#""jump""#, .unknown(.string("jump"))), ("null", .unknown(.null)),
        ("7", .unknown(.integer(7))), (#"{"jump":{"to":[1,null]}}"#, nil),
    ]

    @Test("a known value is decoded, and anything else is kept as JSON and written back", arguments: rows)
    func values(text: String, value: Tolerant<Move>?) throws {
        let tolerant = try read(Tolerant<Move>.self, text)
        if let value { #expect(tolerant == value) }
        #expect(tolerant.value == (text == #""left""# ? .left : nil))
        #expect(try written(tolerant) == text)
        // Other coders too.
        #expect(try JSONDecoder().decode([Tolerant<Move>].self, from: Data("[\(text)]".utf8)) == [tolerant])
        let again = try JSONEncoder().encode([tolerant])
        #expect(String(decoding: again, as: UTF8.self) == "[\(text)]")
    }

    @Test("only the unknown values in a struct and in an array are unknown")
    func parts() throws {
        let text = """
            [{"id":1,"last":"jump","next":{"fly":{"at":[{"x":1}]}}},{"id":2,"last":"left","next":{"go":{"to":3}}},\
            {"id":3,"last":{"deep":[1,2,{"a":[]}]},"at":"2026-01-01T00:00:00.000Z"},{"id":4,"last":"right","at":"never"}]
            """
        let lots = try read([Lot].self, text)
        #expect(lots.map(\.id) == [1, 2, 3, 4])
        #expect(lots.map(\.last.value) == [nil, .left, nil, .right])
        #expect(lots.map { $0.next?.value } == [nil, .go(to: 3), nil, nil])
        #expect(lots[0].next != nil && lots[2].next == nil)
        #expect(lots[2].at == .known(Date(timeIntervalSince1970: 1_767_225_600)))
        #expect(lots[3].at == .unknown(.string("never")))
        #expect(try read([Lot].self, written(lots)) == lots)
        let elements = try read([Tolerant<Lot>].self, #"[{"id":1,"last":"left"},{"id":"two"},{"id":3,"last":"up"}]"#)
        #expect(elements.map { $0.value?.id } == [1, nil, 3])
    }

    @Test("an error after an unknown value has its own path", arguments: [#"{"id":"1"}"#, #"{"last":"left"}"#])
    func path(second: String) {
        let error = #expect(throws: (any Error).self) {
            try read([Lot].self, #"[{"id":1,"last":{"a":[1]}},\#(second)]"#)
        }
        #expect("\(error.map { "\($0)" } ?? "")".contains("id"))
    }

    @Test("text that is not valid JSON is an error", arguments: ["", "{", "lef", #""left"#, "[1,]"])
    func invalid(text: String) {
        #expect(throws: (any Error).self) { try read(Tolerant<Move>.self, text) }
    }
}
