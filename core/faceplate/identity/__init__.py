"""Who becomes whom: people made from photos, and the file that carries them through a film."""
