import Foundation
import SharedState
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

@Suite struct PendingWritesTests {
    private func pending(_ commands: [DocumentCommand]) throws -> PendingWrites {
        var pending = PendingWrites(client: "c")
        for command in commands { _ = try pending.append([DocumentWrite(command)]) }
        return pending
    }

    private func shown(
        _ pending: PendingWrites, _ query: CollectionQuery = .all, _ documents: [Document], seen: Int? = 10
    ) -> [String] {
        pending.apply(over: KeyedCollection(documents), query, seen: seen).map {
            "\($0.id):\($0.fields["n"].map { "\($0)" } ?? "-")".replacing("integer", with: "")
        }
    }

    @Test(
        "a file with values that no client has written is refused: numbering would continue from them",
        arguments: [
            #"{"client":"0123456789abcdef","lastNumber":9223372036854775807,"lastSent":0,"entries":[]}"#,
            #"{"client":"0123456789abcdef","lastNumber":-1,"lastSent":0,"entries":[]}"#,
            #"{"client":"0123456789abcdef","lastNumber":1,"lastSent":2,"entries":[]}"#,
            #"{"client":"0123456789abcdef","lastNumber":1,"lastSent":0,"entries":[{"mutation":{"number":2,"command":{"delete":{"id":"a"}}}}]}"#,
        ])
    func damaged(text: String) throws {
        let folder = try TemporaryFolder()
        let url = URL(fileURLWithPath: folder.path)
        let file = PendingWritesFile("todos", of: .signedOut, in: OfflineFolder(url, DiskFileStorage.secrets))
        try DiskFileStorage.secrets.replace(file.url, with: Data(text.utf8))
        #expect(throws: CollectionError.self) { try file.read() }
    }

    @Test("pending writes are shown over the server's data, in every query")
    func showing() throws {
        let base = (1...3).map { Document.todo("\($0)", ["n": .integer(Int64($0))], created: $0) }
        let five = JSONValue.integer(5)
        let table: [([DocumentCommand], CollectionQuery, [String])] = [
            ([], .all, ["1:(1)", "2:(2)", "3:(3)"]),
            ([.add("4")], .all, ["1:(1)", "2:(2)", "3:(3)", "4:-"]),
            ([.update(id: "2", fields: ["n": five])], .all, ["1:(1)", "2:(5)", "3:(3)"]),
            ([.update(id: "9", fields: ["n": five])], .all, ["1:(1)", "2:(2)", "3:(3)"]),
            ([.delete(id: "1"), .add("1", ["n": five])], .all, ["2:(2)", "3:(3)", "1:(5)"]),
            ([.add("1", ["n": five])], .all, ["1:(1)", "2:(2)", "3:(3)"]),
            (
                [.update(id: "1", fields: ["n": five])], CollectionQuery(order: [.descending("n")], limit: 2),
                ["1:(5)", "3:(3)"]
            ),
            (
                [.update(id: "2", fields: ["n": five]), .add("4", ["n": .integer(1)])],
                CollectionQuery(where: [.field("n", isLessThan: .integer(4))]), ["1:(1)", "3:(3)", "4:(1)"]
            ),
        ]
        for (commands, query, expected) in table {
            let base = base.filter(query.matches).sorted(by: query.precedes)
            #expect(shown(try pending(commands), query, base) == expected, "\(commands)")
        }
    }

    @Test("a write is shown until the result contains it, and not after")
    func acknowledged() throws {
        var pending = try pending([.update(id: "1", fields: ["n": .integer(5)])])
        let old = [Document.todo("1", ["n": .integer(1)])]
        _ = pending.beginSending()
        pending.settle(MutationOutcome(number: 1, revision: 11))
        #expect(!pending.isWaiting)
        #expect(shown(pending, .all, old, seen: 10) == ["1:(5)"], "the response arrived before the result")
        #expect(
            shown(pending, .all, [.todo("1", ["n": .integer(7)])], seen: 11) == ["1:(7)"], "another client wrote later")
        pending.removeWrites(through: 10)
        #expect(pending.entries.count == 1)
        pending.removeWrites(through: 11)
        #expect(pending.entries.isEmpty)
    }

    @Test("a refused write is rolled back completely, and later ones stay")
    func refused() throws {
        var pending = try pending([.add("a"), .add("b")])
        _ = pending.beginSending()
        pending.settle(MutationOutcome(number: 1, revision: 0, error: .alreadyExists(id: "a")))
        #expect(shown(pending, .all, []) == ["b:-"])
        #expect(pending.beginSending().map(\.number) == [2])
    }

    @Test("writes that may have been sent are sent again in order, and cannot be cancelled")
    func order() throws {
        var pending = try pending((1...40).map { .add("\($0)") })
        let isTakenBack = pending.withdraw(5)
        #expect(isTakenBack)
        let first = pending.beginSending().map(\.number)
        #expect(first == Array(1...4) + Array(6...33))
        #expect(pending.beginSending().map(\.number) == first)
        let late = (pending.withdraw(6), pending.withdraw(40))
        #expect(late == (false, true))
        for number in first { pending.settle(MutationOutcome(number: number, revision: number)) }
        #expect(pending.beginSending().map(\.number) == Array(34...39))
    }

    @Test("the number of pending writes is limited")
    func limit() throws {
        var pending = try pending((1...PendingWrites.limit).map { .delete(id: "\($0)") })
        #expect(throws: CollectionError.tooManyPending(limit: PendingWrites.limit)) {
            try pending.append([DocumentWrite(.delete(id: "x"))])
        }
    }

    @Test("an increment is shown once, whether the result or the response arrives first")
    func increments() throws {
        func result(_ n: Int64, at revision: Int) -> QueryResult {
            var result = QueryResult()
            result.documents = KeyedCollection([.todo("1", ["n": .integer(n)])])
            result.revision = revision
            return result
        }
        func shown(_ pending: PendingWrites, _ result: QueryResult, _ uncertain: UncertainDocuments) -> JSONValue? {
            var uncertain = uncertain
            uncertain.remove(pending)
            return pending.apply(over: result.documents, .all, seen: result.revision, uncertain: uncertain.documents)
                .first?.fields["n"]
        }
        let increment = [DocumentWrite(.increment(id: "1", field: "n", by: .integer(1)))]
        for answersFirst in [true, false] {
            var pending = PendingWrites(client: "c")
            var uncertain = UncertainDocuments()
            var newest = result(0, at: 0)
            for number in 1...3 {
                let expected = JSONValue.integer(Int64(number))
                _ = try pending.append(increment)
                #expect(shown(pending, newest, uncertain) == expected, "shown immediately")
                _ = pending.beginSending()
                for step in answersFirst ? ["answer", "result"] : ["result", "answer"] {
                    if step == "answer" {
                        pending.settle(MutationOutcome(number: number, revision: number))
                    } else {
                        uncertain.retainDocuments(newest, seen: newest.revision, pending)
                        newest = result(Int64(number), at: number)
                    }
                    #expect(shown(pending, newest, uncertain) == expected, "\(number): after the \(step)")
                }
                // The client learns late that the result contains it.
                if number == 2 { pending.removeWrites(through: number) }
            }
        }
    }

    @Test("a transaction is shown as a whole, and not at all when a part of it fails")
    func transactions() throws {
        let base = [Document.todo("1", ["n": .integer(1)], created: 1), .todo("2", ["n": .integer(2)], created: 2)]
        let one = DocumentWrite(.increment(id: "1", field: "n", by: .integer(10)))
        let table: [([DocumentWrite], [String])] = [
            ([one, DocumentWrite(.delete(id: "2"))], ["1:(11)"]),
            ([one, DocumentWrite(.add("2"))], ["1:(1)", "2:(2)"]),
            ([one, DocumentWrite(.check(id: "2"), if: .field("n", equals: .integer(3)))], ["1:(1)", "2:(2)"]),
            ([one, one, DocumentWrite(.check(id: "1"), if: .field("n", equals: .integer(21)))], ["1:(21)", "2:(2)"]),
        ]
        for (writes, expected) in table {
            var pending = PendingWrites(client: "c")
            _ = try pending.append(writes)
            #expect(shown(pending, .all, base) == expected, "\(writes)")
        }
    }
}
