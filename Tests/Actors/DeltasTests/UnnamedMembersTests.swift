import Deltas
import Testing
import TrebuchetWire

@Suite("Record members without a declared name")
struct UnnamedMembersTests {
    struct Board: DeltaRecord {
        @DeltaValue var title = ""
        var items = KeyedCollection<Item>()
        var note: String?
        var count = 0

        static let deltaMembers: [DeltaMember<Board>] = [
            DeltaMember("title", \._title), DeltaMember("items", \.items),
        ]
    }

    struct Complete: DeltaRecord {
        @DeltaValue var title = ""
        @DeltaValue var note: String?
        /// Not of its JSON.
        var seen = 0

        enum CodingKeys: String, CodingKey { case title = "t", note }
        static let deltaMembers: [DeltaMember<Complete>] = [
            DeltaMember("t", \._title), DeltaMember("note", \._note),
        ]
    }

    struct Outer: DeltaRecord {
        var board = Board()

        static let deltaMembers: [DeltaMember<Outer>] = [DeltaMember("board", \.board)]
    }

    private func changes<State: DeltaState>(_ state: State, _ change: (inout State) -> Void) -> StateChanges? {
        var (state, reader) = (state, ChangeReader())
        _ = reader.take(from: &state, with: ValueCoder())
        change(&state)
        return reader.take(from: &state, with: ValueCoder())
    }

    @Test("a record that names all members sends changes")
    func complete() {
        #expect(changes(Complete()) { $0.title = "a" } != nil)
        #expect(changes(Complete()) { $0.note = "a" } != nil)
    }

    @Test("a record that omits a member is sent as a whole, whatever changed, also inside another record")
    func incomplete() {
        #expect(changes(Board()) { $0.count = 1 } == nil)
        #expect(changes(Board()) { $0.note = "a" } == nil)
        #expect(changes(Board()) { $0.title = "a" } == nil)
        #expect(changes(Outer()) { $0.board.title = "a" } == nil)
    }
}
