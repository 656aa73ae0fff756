import Bytes
import Testing
import Trebuchet
import TrebuchetWire

@testable import TrebuchetServices

@Suite struct MutationDeduplicationWindowTests {
    private static let client = "0123456789abcdef"

    @Test("a number repeated with another command is refused without an effect")
    func reusedNumber() {
        var table = DocumentTable(limits: CollectionLimits())
        func apply(_ number: Int, _ command: DocumentCommand) -> CollectionError? {
            let mutation = DocumentMutation(number: number, command: command)
            return table.apply(mutation, from: Self.client, creator: nil, at: 0) { _, _ in true }.error
        }
        let fields: JSONObject = ["v": .integer(1), "w": .array([.null, .bool(true), .string("x"), .number(0.5)])]
        #expect(apply(1, .add("a", fields)) == nil)
        #expect(apply(1, .add("a", fields)) == nil, "a repeated mutation has its outcome")
        let others: [DocumentCommand] = [
            .add("b", fields), .add("a"), .add("a", fields.with("v", .integer(2))), .delete(id: "a"),
            .update(id: "a", fields: fields), .link(id: "a", field: "v", target: .integer(1)),
        ]
        for other in others { #expect(apply(1, other) == .numberReused, "\(other)") }
        #expect(table.document("b") == nil && table.document("a") != nil)
        #expect(apply(2, .link(id: "a", field: "tags", target: .string("x"))) == nil)
        #expect(apply(2, .unlink(id: "a", field: "tags", target: .string("x"))) == .numberReused)
        #expect(apply(3, .add("a")) == .alreadyExists(id: "a"))
        #expect(apply(3, .add("c")) == .numberReused, "this also applies to a refused mutation")
    }

    @Test("a deduplication window survives storing; one stored without commands is still valid")
    func stored() throws {
        var window = MutationDeduplicationWindow()
        window.remember(MutationOutcome(number: 1, revision: 4), of: DocumentMutation(number: 1, command: .add("a")))
        var buffer = ByteBuffer()
        try ValueCoder().encode(window, into: &buffer)
        let again = try ValueCoder().decode(MutationDeduplicationWindow.self, from: buffer.bytes)
        #expect(again == window)
        #expect(again.outcome(of: DocumentMutation(number: 1, command: .add("a")))?.error == nil)
        #expect(again.outcome(of: DocumentMutation(number: 1, command: .add("b")))?.error == .numberReused)
        let old = #"{"last":1,"outcomes":[{"number":1,"revision":4}]}"#
        let before = try Array(old.utf8).withUnsafeBytes {
            try ValueCoder().decode(MutationDeduplicationWindow.self, from: $0)
        }
        #expect(before.outcome(of: DocumentMutation(number: 1, command: .add("b")))?.revision == 4)
    }
}
