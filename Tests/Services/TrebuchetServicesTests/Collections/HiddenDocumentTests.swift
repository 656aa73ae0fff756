import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// Writes to documents that their writer may not read.
@Suite struct HiddenDocumentTests {
    private static let conditions: [WriteCondition?] = [
        nil, .absent, .revision(1), .field("n", equals: .integer(1)), .field("n", equals: .integer(3)),
    ]

    /// Everything is allowed to the writer except reading the documents of others.
    private func may(_ action: CollectionAction, _ document: Document) -> Bool {
        action != .read || document.creator == "eve"
    }

    /// A table, perhaps with a document of another creator.
    private func table(_ isThere: Bool) -> DocumentTable {
        var table = DocumentTable(limits: CollectionLimits())
        guard isThere else { return table }
        let fields: JSONObject = ["n": .integer(1), "text": .string("x")]
        let mutation = DocumentMutation(number: 1, command: .add("a", fields))
        #expect(table.apply(mutation, from: "the creator's client", creator: "ada", at: 0, may: may).error == nil)
        return table
    }

    @Test(
        "a refused transaction has the same error and index whether it writes to an unreadable document or to none",
        arguments: [
            .update(id: "a", fields: ["n": .integer(2)]), .merge(id: "a", fields: ["n": .integer(1)]),
            .increment(id: "a", field: "n", by: .integer(.max)), .increment(id: "a", field: "n", by: .integer(-9)),
            .link(id: "a", field: "n", target: .string("b")), .unlink(id: "a", field: "text", target: .string("b")),
            .expire(id: "a", expiresIn: .seconds(1)), .delete(id: "a"), .check(id: "a"),
        ] as [DocumentCommand])
    func index(command: DocumentCommand) {
        for condition in Self.conditions {
            func outcome(_ isThere: Bool) -> [String] {
                var table = table(isThere)
                let before = table.document("a")
                let writes = [
                    DocumentWrite(.add("b")), DocumentWrite(command, if: condition),
                    DocumentWrite(.check(id: "none")),
                ]
                let outcome = table.apply(
                    DocumentMutation(number: 1, writes: writes), from: "another client", creator: "eve", at: 0, may: may
                )
                #expect(table.document("a") == before)
                return ["\(String(describing: outcome.error))", "\(String(describing: outcome.index))"]
            }
            #expect(outcome(true) == outcome(false), "\(command) if \(String(describing: condition))")
        }
    }

    @Test(
        "a permitted write does nothing to a document that its writer may not read",
        arguments: [
            .update(id: "a", fields: ["n": .integer(2)]), .merge(id: "a", fields: ["m": .integer(1)]),
            .increment(id: "a", field: "n", by: .integer(1)), .link(id: "a", field: "l", target: .string("b")),
            .expire(id: "a", expiresIn: .seconds(1)), .delete(id: "a"),
        ] as [DocumentCommand])
    func plain(command: DocumentCommand) {
        var (table, empty) = (table(true), table(false))
        let before = table.document("a")
        let mutation = DocumentMutation(number: 1, command: command)
        let outcome = table.apply(mutation, from: "another client", creator: "eve", at: 0, may: may)
        let expected = empty.apply(mutation, from: "another client", creator: "eve", at: 0, may: may)
        #expect(outcome.error == expected.error && table.document("a") == before)
        #expect(table.apply(mutation, from: "the owner's client", creator: "ada", at: 0) { _, _ in true }.error == nil)
        #expect(table.document("a") != before)
    }

    @Test("31 refused transactions reveal nothing about an integer")
    func search() {
        var table = table(true)
        // Each tests one bit: the increment overflows if the hidden number is above the bound.
        for bit in 0..<31 {
            let writes = [
                DocumentWrite(.increment(id: "a", field: "n", by: .integer(.max - 1 << bit))),
                DocumentWrite(.check(id: "none")),
            ]
            let outcome = table.apply(
                DocumentMutation(number: bit + 1, writes: writes), from: "another client", creator: "eve", at: 0,
                may: may)
            #expect(outcome.index == 0 && outcome.error == .notFound(id: "a"))
        }
    }
}
