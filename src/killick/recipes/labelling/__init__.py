"""What people are asked about a world, and what they said."""
