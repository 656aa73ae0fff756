import SwiftDiagnostics
import SwiftSyntax

/// The arguments `version: 2, migrate: { json, from in … }` of `@StreamedState(persisted: true, …)`.
struct StateVersionArguments {
    private let number: Int
    private let migrate: ExprSyntax?

    /// Reads the arguments; nil without either of the two.
    ///
    /// - Parameter arguments: the arguments of the attribute, by their labels.
    init?(_ arguments: [String: ExprSyntax], isPersisted: Bool) throws(DiagnosticsError) {
        migrate = arguments["migrate"]
        guard let version = arguments["version"] else {
            guard let migrate else { return nil }
            throw Self.error(
                "migrate.version", at: migrate,
                isPersisted
                    ? "'migrate' needs a target version: write 'version: 2' before it"
                    : "'migrate' requires a persisted state: write 'persisted: true, version: 2' before it"
            )
        }
        guard isPersisted else {
            throw Self.error(
                "version.persisted", at: version,
                "'version' requires a persisted state: write 'persisted: true' before it")
        }
        guard let number = version.as(IntegerLiteralExprSyntax.self)?.representedLiteralValue, number >= 1 else {
            throw Self.error(
                "version", at: version,
                "'@StreamedState' requires 'version' as an integer literal from 1, such as 'version: 2', because it is read when the code "
                    + "is compiled")
        }
        if let migrate, number == 1 {
            throw Self.error(
                "migrate.first", at: migrate,
                "'migrate' has no effect for version 1, because no older version exists: write "
                    + "'version: 2'")
        }
        self.number = number
    }

    private static func error(_ id: String, at node: ExprSyntax, _ message: String) -> DiagnosticsError {
        DiagnosticsError(diagnostics: [MacroDiagnostic.error(id, at: node, message)])
    }

    /// The argument of the entry in the dispatch table.
    var entryArgument: String {
        "version: .init(\(number)\(migrate.map { ", migrate: \($0.trimmed)" } ?? ""))"
    }
}
