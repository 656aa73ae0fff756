import SwiftDiagnostics
import SwiftSyntax

/// `version: 2, migrate: { json, from in … }` of `@StreamedState(persisted: true, …)`.
struct StateVersionArguments {
    private let number: Int
    private let migrate: ExprSyntax?

    /// - Parameter arguments: of the attribute, by their labels. Nil when neither of the two is among them.
    init?(_ arguments: [String: ExprSyntax], isPersisted: Bool) throws(DiagnosticsError) {
        migrate = arguments["migrate"]
        guard let version = arguments["version"] else {
            guard let migrate else { return nil }
            throw Self.error(
                "migrate.version", at: migrate,
                isPersisted
                    ? "'migrate' needs the version that it makes: write 'version: 2' before it"
                    : "'migrate' changes what is stored, and this state is not: write 'persisted: true, version: 2' before it"
            )
        }
        guard isPersisted else {
            throw Self.error(
                "version.persisted", at: version,
                "'version' is that of what is stored, and this state is not: write 'persisted: true' before it")
        }
        guard let number = version.as(IntegerLiteralExprSyntax.self)?.representedLiteralValue, number >= 1 else {
            throw Self.error(
                "version", at: version,
                "'@StreamedState' must be told 'version' as a number from 1, as 'version: 2', since it is read when the code "
                    + "is compiled")
        }
        if let migrate, number == 1 {
            throw Self.error(
                "migrate.first", at: migrate,
                "'migrate' makes what older versions have stored into version 1, and there is none before it: write "
                    + "'version: 2'")
        }
        self.number = number
    }

    private static func error(_ id: String, at node: ExprSyntax, _ message: String) -> DiagnosticsError {
        DiagnosticsError(diagnostics: [Problem.error(id, at: node, message)])
    }

    /// The argument of the entry in the dispatch table.
    var entryArgument: String {
        "version: .init(\(number)\(migrate.map { ", migrate: \($0.trimmed)" } ?? ""))"
    }
}
