import ServicesClient

@main
enum ServicesClientTool {
    static func main() async throws { try await ServicesClient.run(CommandLine.arguments) }
}
