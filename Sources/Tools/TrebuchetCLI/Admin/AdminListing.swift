import Commands
import Glibc
import Trebuchet
import TrebuchetServices

/// A list for an administrator: requested in pages, printed as a table or as one line of JSON per entry.
struct AdminListing<Entry: Encodable> {
    static var options: [OptionSpec] {
        AdminClient.options + [
            OptionSpec("--limit", "N", "at most N entries (1000)"),
            OptionSpec("--after", "NAME", "entries after this name, such as the last of the previous list"),
            OptionSpec("--json", nil, "print JSON lines instead of a table"),
        ]
    }

    let columns: [String]
    let page: (_ after: String?, _ limit: Int) -> AdminRequest
    let entries: (AdminResponse) -> [Entry]?
    /// The value that the list is ordered by.
    let name: (Entry) -> String
    let cells: (Entry) -> [String]

    func print(_ arguments: ParsedArguments) async throws {
        let limit = try arguments.int("--limit", in: 1...1_000_000) ?? 1_000
        let client = try AdminClient(arguments)
        var table = TextTable(columns)
        var count = 0
        var last = arguments.string("--after")
        var hasMore = false
        while true {
            // A page may have fewer entries than requested; an empty page is the end. Requests one entry more to learn whether
            // there are more.
            let answer = try await client.request(page(last, min(500, max(1, limit - count))))
            guard let found = entries(answer) else { throw AdminClient.unexpected(answer) }
            hasMore = count == limit && !found.isEmpty
            guard count < limit, !found.isEmpty else { break }
            for entry in found.prefix(limit - count) {
                last = name(entry)
                count += 1
                if arguments.has("--json") {
                    Console.print(LogLine.ofJSON(JSONArgument.text(try JSONValue(encoding: entry))))
                } else {
                    table.addRow(cells(entry))
                }
            }
        }
        if !arguments.has("--json"), count > 0 { for line in table.lines { Console.print(line) } }
        if hasMore, let last { Console.error("more entries: --after '\(last)'") }
    }
}
